-- documents_look.sql: what is stored of tenant $1's documents named by sources $2 and external ids $3.
-- Each is looked up by its unique key, whatever the statistics say: `offset 0` keeps the tenant out of the choice of an index, which on a
-- table that nobody has analysed yet would read all of a tenant's rows.
select d.id, d.source_id, d.external_id, d.content_sha256, d.embedding_model, d.source_version, d.revision, d.n_chunks,
    d.deleted_at is not null as is_deleted, d.removed_at is not null as is_removed, d.blob_key, d.status
from unnest($2::uuid[], $3::text[]) w (source_id, external_id)
cross join lateral (
    select * from public.source_documents s where s.source_id = w.source_id and s.external_id = w.external_id offset 0
) d
where d.tenant_id = $1
