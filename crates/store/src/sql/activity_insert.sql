-- activity_insert.sql: inserts events with their untouched originals, and returns the ids of the new ones. The order is always the same, so two
-- groups never lock in opposite order. A known event waits for the transaction that is writing it. The intake's committer runs it; a trigger
-- (tributary.send_remember_activity) queues the new rows for memory. An owner who was removed meanwhile owns nothing: it is everyone's.
with given as (
    select * from unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::uuid[], $9::text[],
        $10::text[], $11::bytea[], $12::bytea[], $13::text[]
    ) as g (id, tenant_id, type, direction, sales_id, raw_data, metadata, provider_id, event_key, content_type, sha256, body, blob_key)
), inserted as (
    insert into public.activities (id, tenant_id, type, direction, sales_id, raw_data, metadata, provider_id, event_key)
    select id, tenant_id, type, direction,
        (select s.id from public.sales s where s.tenant_id = given.tenant_id and s.id = given.sales_id) as sales_id, raw_data::jsonb, metadata::jsonb, provider_id, event_key
    from given
    order by provider_id, event_key collate "C", id
    on conflict do nothing
    returning id
), kept as (
    insert into tributary.activity_payloads (tenant_id, activity_id, content_type, sha256, body, blob_key)
    select g.tenant_id, g.id, g.content_type, g.sha256, g.body, g.blob_key from given g join inserted i on i.id = g.id
)
select id from inserted
