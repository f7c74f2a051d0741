-- documents_lock.sql: locks tenant $1's documents $2 in id order and returns what is stored of them now. Each by its key, whatever the statistics
-- say (see documents_look.sql).
select d.id, d.source_id, d.external_id, d.content_sha256, d.embedding_model, d.source_version, d.revision, d.n_chunks,
    d.deleted_at is not null as is_deleted, d.removed_at is not null as is_removed, d.blob_key, d.status
from (select id from unnest($2::uuid[]) w (id) order by id offset 0) w
cross join lateral (select * from public.source_documents s where s.tenant_id = $1 and s.id = w.id for update) d
