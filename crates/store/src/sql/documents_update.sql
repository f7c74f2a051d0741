-- documents_update.sql: updates tenant $1's changed documents, whose rows are already locked. The text of a deleted document is removed.
update public.source_documents d
set document_type = r.document_type, title = r.title, text = r.text, lang = r.lang::regconfig, raw_payload = r.raw_payload, blob_key = r.blob_key,
    content_sha256 = r.content_sha256, embedding_model = r.embedding_model,
    embedding_text_sha256 = case when r.embedding_model is not null then r.content_sha256 end,
    source_version = coalesce(r.source_version, d.source_version), thread_id = coalesce(r.thread_id, d.thread_id),
    contact_id = case when starts_with(r.document_type, 'activity.') and not r.is_deleted then r.contact_id else coalesce(r.contact_id, d.contact_id) end, source_metadata = r.source_metadata,
    source_created_at = coalesce(r.source_created_at, d.source_created_at), source_updated_at = r.source_updated_at, n_chunks = r.n_chunks,
    status = r.status, skip_reason = r.skip_reason, revision = d.revision + 1, deleted_at = case when r.is_deleted then coalesce(d.deleted_at, now()) end, updated_at = now()
from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::jsonb[], $10::text[], $11::bytea[], $12::text[], $13::int8[],
    $14::text[], $15::int8[], $16::jsonb[], $17::timestamptz[], $18::timestamptz[], $19::int4[], $20::bool[], $21::text[], $22::text[]) r (
    id, source_id, external_id, document_type, title, text, lang, raw_payload, blob_key, content_sha256, embedding_model, source_version,
    thread_id, contact_id, source_metadata, source_created_at, source_updated_at, n_chunks, is_deleted, status, skip_reason)
where d.tenant_id = $1 and d.id = r.id
returning d.id
