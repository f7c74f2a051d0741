-- queue_park.sql: receipt ($2, $3) leaves its queue $7 as parked row $4, for reason $5, for $6 seconds (null: until an event).
-- A wait like any other: it costs no attempt.
with gone as (
    delete from {q} where msg_id = $2 and read_ct = $3
    returning read_ct, enqueued_at, message, headers
)
insert into tributary.parked (id, tenant_id, queue, message, headers, reason, until, parked_at)
select $4, coalesce((message ->> 'tenant_id')::uuid, (select id from public.tenants where is_operator)), $7, message,
    (coalesce(headers, '{}') - array['by', 'since']) || jsonb_build_object('enqueued_at', enqueued_at, 'read_ct', read_ct,
        'waits', coalesce((headers ->> 'waits')::int, 0) + 1),
    $5, coalesce($1, now()) + make_interval(secs => $6), coalesce($1, now())
from gone
