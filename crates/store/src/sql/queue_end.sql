-- queue_end.sql: a person ends message $2, held or not: it goes to the archive in state $3 with reason $4. A worker that holds it
-- finds its receipt worthless. With $5 false a held message is left alone.
with gone as (
    delete from {q} where msg_id = $2 and ($5 or not coalesce(headers ? 'by' and vt > coalesce($1, now()), false))
    returning msg_id, read_ct, enqueued_at, vt, message, headers
)
insert into {a} (msg_id, read_ct, enqueued_at, archived_at, vt, message, headers)
select msg_id, read_ct, enqueued_at, coalesce($1, now()), vt, message,
    (coalesce(headers, '{}') - array['by', 'since'])
        || jsonb_build_object('state', $3::text, 'reason', $4::text, 'ended_at', coalesce($1, now()))
from gone
