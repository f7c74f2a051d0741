-- attachments_documents.sql: the files of tenant $1's activity $2 in their order, each with the document that was made of it, unless that is deleted.
select f.ordinal, f.name, f.content_type, f.content_id, f.bytes, f.blob_key, d.id as document_id, d.status
from tributary.activity_attachments f
join public.activities a on a.tenant_id = f.tenant_id and a.id = f.activity_id
left join lateral (
    select d.id, d.status from public.source_documents d
    where d.tenant_id = a.tenant_id and d.external_id = 'attachment:' || a.id::text || '/' || f.ordinal and d.deleted_at is null
        and d.source_id = coalesce((select s.id from public.connected_sources s where s.tenant_id = a.tenant_id and s.id = a.provider_id),
            (select m.id from public.connected_sources m where m.tenant_id = a.tenant_id and m.provider = 'manual'))
) d on true
where f.tenant_id = $1 and f.activity_id = $2
order by f.ordinal
