-- activities_tenants.sql: tenants that have raw activities, found by hopping from tenant to tenant along the index.
with recursive hop as (
    (select tenant_id from public.activities where processing_status = 'raw' order by tenant_id limit 1)
    union all
    select (select a.tenant_id from public.activities a where a.processing_status = 'raw' and a.tenant_id > hop.tenant_id order by a.tenant_id limit 1)
    from hop where hop.tenant_id is not null
)
select tenant_id from hop where tenant_id is not null limit 1000
