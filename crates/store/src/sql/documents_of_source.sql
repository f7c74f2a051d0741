-- documents_of_source.sql: the $2 documents of the caller's source $1 that were stored or changed last.
select d.id, d.source_id, s.name as source_name, d.external_id, d.document_type, d.title, left(d.text, 300) as text, d.n_chunks,
    d.embedding_model is not null as is_embedded, d.status, d.skip_reason, d.created_at, d.updated_at
from public.source_documents d join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
where d.source_id = $1 and d.deleted_at is null
order by d.updated_at desc, d.id desc
limit $2
