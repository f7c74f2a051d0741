-- documents_list.sql: up to $2 of the caller's documents, the newest first, from the one after document $1 on. Ids are made in the order of time.
select d.id, d.source_id, s.name as source_name, d.external_id, d.document_type, d.title, left(d.text, 300) as text, d.n_chunks,
    d.embedding_model is not null as is_embedded, d.created_at, d.updated_at
from public.source_documents d join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
where d.deleted_at is null and ($1::uuid is null or d.id < $1)
order by d.id desc
limit $2
