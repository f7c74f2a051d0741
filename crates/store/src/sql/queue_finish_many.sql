-- queue_finish_many.sql: deletes the messages of receipts ($1, $2) that are still ours, and returns them.
delete from {q} q using unnest($1::bigint[], $2::int[]) as r (msg_id, read_ct)
where q.msg_id = r.msg_id and q.read_ct = r.read_ct
returning q.msg_id
