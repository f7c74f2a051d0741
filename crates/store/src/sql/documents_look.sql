-- documents_look.sql: what is stored of tenant $1's documents named by sources $2 and external ids $3.
select d.id, d.source_id, d.external_id, d.content_sha256, d.embedding_model, d.source_version, d.revision, d.n_chunks,
    d.deleted_at is not null as is_deleted
from unnest($2::uuid[], $3::text[]) w (source_id, external_id)
join public.source_documents d on d.source_id = w.source_id and d.external_id = w.external_id and d.tenant_id = $1
