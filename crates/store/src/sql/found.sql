-- found.sql: the caller's documents $1, each with its chunk of $2, in that order; those that are gone are left out.
select f.document_id, f.chunk_id, d.title, d.document_type, d.source_id, s.name as source_name, d.external_id,
    coalesce(d.source_created_at, d.created_at) as at, d.created_at as stored_at,
    c.ordinal, c.page, c.page_label, file.kind as file_kind, d.n_chunks, d.source_metadata ->> 'url' as url, c.text
from unnest($1::uuid[], $2::uuid[]) with ordinality f (document_id, chunk_id, nth)
join public.source_documents d on d.tenant_id = (select tributary.tenant()) and d.id = f.document_id
join public.document_chunks c on c.tenant_id = d.tenant_id and c.id = f.chunk_id
join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
left join public.files file on file.tenant_id = d.tenant_id and file.sha256 = d.blob_key
order by f.nth
