-- activity_to_remember.sql: tenant $1's activity $2, the source that it belongs to, and the mailbox whose letter it is, also if
-- its channel was deleted.
select a.id, a.type, a.direction, a.contact_id, a.raw_data, a.processed_data, a.metadata, a.created_at, a.updated_at, s.id as source_id,
    m.id as mailbox_id, a.event_key
from public.activities a left join public.connected_sources s on s.tenant_id = a.tenant_id and s.id = a.provider_id
left join public.connected_sources m on m.tenant_id = s.tenant_id and m.id = s.mailbox_id
where a.tenant_id = $1 and a.id = $2
