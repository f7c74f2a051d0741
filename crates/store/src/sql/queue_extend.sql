-- queue_extend.sql: extends the leases of receipts ($2, $3) by $4 seconds from now; never waits for a row that its own effect holds.
-- A message that was handed back or failed meanwhile is nobody's (no `by`) and keeps its time.
with ours as (
    select q.msg_id from {q} q
    join unnest($2::bigint[], $3::int[]) as r (msg_id, read_ct) on r.msg_id = q.msg_id and r.read_ct = q.read_ct
    where q.headers ? 'by'
    order by q.msg_id
    for update of q skip locked
)
update {q} q set vt = coalesce($1, now()) + make_interval(secs => $4)
from ours where q.msg_id = ours.msg_id
returning q.msg_id
