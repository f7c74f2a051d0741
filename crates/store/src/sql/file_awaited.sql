-- file_awaited.sql: tenant $1's document $2, if it has a file, and the size of its bytes.
select d.source_id, d.external_id, d.document_type, d.title, d.raw_payload, d.blob_key, d.source_version, d.thread_id, d.contact_id, d.source_metadata,
    d.source_created_at, d.source_updated_at, d.status, d.updated_at, b.bytes
from public.source_documents d left join tributary.blobs b on b.tenant_id = d.tenant_id and b.sha256 = d.blob_key
where d.tenant_id = $1 and d.id = $2 and d.deleted_at is null and d.blob_key is not null
