-- letters_of_thread.sql: the newest $4 letters of conversation $3 in the caller's source $2, the newest first, without what is long and not read there.
select d.id, d.source_id, s.name as source_name, d.external_id, d.thread_id, d.title, left(d.text, 2000) as text, d.source_metadata, d.contact_id, d.n_chunks,
    d.embedding_model is not null as is_embedded, coalesce(d.source_created_at, d.created_at) as at,
    d.raw_payload || '{"html": null, "headers": []}' as payload
from public.source_documents d join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
where d.tenant_id = $1 and d.source_id = $2 and d.thread_id = $3 and d.document_type like '%.message' and d.deleted_at is null
order by coalesce(d.source_created_at, d.created_at) desc, d.id desc
limit $4
