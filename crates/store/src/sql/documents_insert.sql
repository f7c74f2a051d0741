-- documents_insert.sql: inserts tenant $1's new documents in the order of their names, so that two batches cannot deadlock. An existing
-- name is left alone, and its id is not returned.
insert into public.source_documents (tenant_id, id, source_id, external_id, document_type, title, text, lang, raw_payload, blob_key, content_sha256,
    embedding_model, embedding_text_sha256, source_version, thread_id, contact_id, source_metadata, source_created_at, source_updated_at,
    n_chunks, deleted_at, status, skip_reason)
select $1, r.id, r.source_id, r.external_id, r.document_type, r.title, r.text, r.lang::regconfig, r.raw_payload, r.blob_key, r.content_sha256,
    r.embedding_model, case when r.embedding_model is not null then r.content_sha256 end, r.source_version, r.thread_id, r.contact_id,
    r.source_metadata, r.source_created_at, r.source_updated_at, r.n_chunks, case when r.is_deleted then now() end, r.status, r.skip_reason
from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::jsonb[], $10::text[], $11::bytea[], $12::text[], $13::int8[],
    $14::text[], $15::int8[], $16::jsonb[], $17::timestamptz[], $18::timestamptz[], $19::int4[], $20::bool[], $21::text[], $22::text[]) r (
    id, source_id, external_id, document_type, title, text, lang, raw_payload, blob_key, content_sha256, embedding_model, source_version,
    thread_id, contact_id, source_metadata, source_created_at, source_updated_at, n_chunks, is_deleted, status, skip_reason)
order by r.source_id, r.external_id
on conflict (source_id, external_id) do nothing
returning id
