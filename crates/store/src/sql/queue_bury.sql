-- queue_bury.sql: moves receipt ($2, $3) to the archive in state $4 (dead, skipped …) with its reason $5.
with gone as (
    delete from {q} where msg_id = $2 and read_ct = $3
    returning msg_id, read_ct, enqueued_at, vt, message, headers
)
insert into {a} (msg_id, read_ct, enqueued_at, archived_at, vt, message, headers)
select msg_id, read_ct, enqueued_at, coalesce($1, now()), vt, message,
    (coalesce(headers, '{}') - array['by', 'since'])
        || jsonb_build_object('state', $4::text, 'reason', $5::text, 'ended_at', coalesce($1, now()))
from gone
