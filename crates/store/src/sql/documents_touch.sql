-- documents_touch.sql: updates payload, version and times of tenant $1's documents $2 whose text is unchanged. Returns the changed ones. The contact of an
-- activity's document is the activity's, also if that is none. Without a status ($9), that of the document stays.
update public.source_documents d
set raw_payload = coalesce(r.raw_payload, d.raw_payload), source_metadata = r.source_metadata,
    source_version = greatest(r.source_version, d.source_version), contact_id = case when starts_with(d.document_type, 'activity.') and d.deleted_at is null then r.contact_id else coalesce(r.contact_id, d.contact_id) end,
    source_updated_at = coalesce(r.source_updated_at, d.source_updated_at), blob_key = coalesce(r.blob_key, d.blob_key),
    status = coalesce(r.status, d.status), skip_reason = case when r.status is null then d.skip_reason else r.skip_reason end, updated_at = now()
from unnest($2::uuid[], $3::jsonb[], $4::jsonb[], $5::int8[], $6::int8[], $7::timestamptz[], $8::text[], $9::text[], $10::text[]) r (
    id, raw_payload, source_metadata, source_version, contact_id, source_updated_at, blob_key, status, skip_reason)
where d.tenant_id = $1 and d.id = r.id
    and (coalesce(r.raw_payload, d.raw_payload), r.source_metadata, coalesce(r.source_version, d.source_version), case when starts_with(d.document_type, 'activity.') and d.deleted_at is null then r.contact_id else coalesce(r.contact_id, d.contact_id) end,
        coalesce(r.source_updated_at, d.source_updated_at), coalesce(r.blob_key, d.blob_key),
        coalesce(r.status, d.status), case when r.status is null then d.skip_reason else r.skip_reason end)
    is distinct from (d.raw_payload, d.source_metadata, d.source_version, d.contact_id, d.source_updated_at, d.blob_key, d.status, d.skip_reason)
returning d.id
