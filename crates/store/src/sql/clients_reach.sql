-- clients_reach.sql: the records of tenant $1 that are among $2, have one of the keys $3 or are of one of the clients $4, without those of $5.
with found as (
    select c.tenant_id, c.id from public.client_intelligence c where c.tenant_id = $1 and c.id = any($2::uuid[])
    union
    select c.tenant_id, c.id from public.client_intelligence c where c.keys && $3::text[] and c.tenant_id = $1
    union
    select c.tenant_id, c.id from public.client_intelligence c where c.tenant_id = $1 and c.client_id = any($4::uuid[])
)
select c.id, c.client_id, c.client_name, coalesce(c.source_id || '/' || c.external_id, 'hand/' || c.id) as reference,
    coalesce(c.source_id::text, 'hand') as source, s.provider, c.identity, c.keys, c.marks
from found f
join public.client_intelligence c on c.tenant_id = f.tenant_id and c.id = f.id
left join public.connected_sources s on s.tenant_id = c.tenant_id and s.id = c.source_id
where not c.id = any($5::uuid[])
