-- passages.sql: the caller's documents $1, each with its chunk of $2 and so many ($3) chunks before and after that one, in that order. Those that
-- are gone, or deleted, are left out.
select d.id as document_id, n.id as chunk_id, n.id = c.id as is_best, d.title, d.document_type, d.source_id, s.name as source_name, d.external_id,
    coalesce(d.source_created_at, d.created_at) as at, n.text
from unnest($1::uuid[], $2::uuid[], $3::int[]) with ordinality f (document_id, chunk_id, around, nth)
join public.source_documents d on d.tenant_id = (select tributary.tenant()) and d.id = f.document_id and d.deleted_at is null
join public.document_chunks c on c.tenant_id = d.tenant_id and c.id = f.chunk_id and c.document_id = d.id
join public.document_chunks n on n.tenant_id = d.tenant_id and n.document_id = d.id and n.ordinal between c.ordinal - f.around and c.ordinal + f.around
join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
order by f.nth, n.ordinal
