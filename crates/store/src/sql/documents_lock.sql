-- documents_lock.sql: locks tenant $1's documents $2 in id order and returns what is stored of them now.
select d.id, d.source_id, d.external_id, d.content_sha256, d.embedding_model, d.source_version, d.revision, d.n_chunks,
    d.deleted_at is not null as is_deleted
from public.source_documents d
where d.tenant_id = $1 and d.id = any($2::uuid[])
order by d.id
for update
