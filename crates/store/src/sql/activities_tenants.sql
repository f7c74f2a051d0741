-- activities_tenants.sql: tenants that have raw activities, found by hopping from tenant to tenant along the index. Those that are being forgotten are out
-- of service.
with recursive hop as (
    (select tenant_id from public.activities where processing_status = 'raw' order by tenant_id limit 1)
    union all
    select (select a.tenant_id from public.activities a where a.processing_status = 'raw' and a.tenant_id > hop.tenant_id order by a.tenant_id limit 1)
    from hop where hop.tenant_id is not null
)
select hop.tenant_id from hop
where hop.tenant_id is not null and (select t.forgetting_at is null from public.tenants t where t.id = hop.tenant_id) limit 1000
