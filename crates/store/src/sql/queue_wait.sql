-- queue_wait.sql: gives receipts ($2, $3) back, due after $4 seconds each; costs no attempt. $5: why, in words.
-- Repeated after a lost answer it changes nothing: the message is nobody's (no `by`) then.
update {q} q
set vt = coalesce($1, now()) + make_interval(secs => r.secs),
    headers = (coalesce(q.headers, '{}') - array['by', 'since'])
        || jsonb_build_object('waits', coalesce((q.headers ->> 'waits')::int, 0) + 1, 'reason', $5::text)
from unnest($2::bigint[], $3::int[], $4::float8[]) as r (msg_id, read_ct, secs)
where q.msg_id = r.msg_id and q.read_ct = r.read_ct and q.headers ? 'by'
returning q.msg_id
