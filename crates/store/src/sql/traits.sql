-- traits.sql: what the caller's documents $1 are counted and sorted by; those that are gone are left out.
select d.id as document_id, d.document_type, d.source_id, s.name as source_name, s.provider = 'channel' as is_of_channel,
    coalesce(d.source_created_at, d.created_at) as at,
    (select f.value from public.document_fields f
     where f.tenant_id = d.tenant_id and f.document_id = d.id and f.name = 'paper' and f.ordinal = 0) as paper,
    (select f.value from public.document_fields f
     where f.tenant_id = d.tenant_id and f.document_id = d.id and f.name = 'supplier' and f.ordinal = 0) as supplier
from public.source_documents d
join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
where d.tenant_id = (select tributary.tenant()) and d.id = any($1)
