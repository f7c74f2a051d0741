-- letter_get.sql: the letter that is document $1 with its source, if the caller may see it; deleted ones too.
select d.id, d.source_id, s.name as source_name, s.provider as source_provider, d.external_id, d.document_type, d.title, d.text,
    d.lang::text as lang, d.raw_payload, d.blob_key, d.embedding_model, d.source_version, d.status, d.skip_reason, d.source_metadata, d.n_chunks,
    d.revision, d.source_created_at, d.source_updated_at, d.deleted_at, d.removed_at, d.removed_by, d.created_at, d.updated_at,
    d.thread_id, d.contact_id, coalesce(d.source_created_at, d.created_at) as at
from public.source_documents d join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
where d.id = $1 and d.document_type like '%.message'
