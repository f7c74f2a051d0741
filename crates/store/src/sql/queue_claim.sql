-- queue_claim.sql: claims up to $2 due messages for $3 seconds in the name of $4, the longest due first. $1: a fixed clock.
-- A message that still names a holder was never settled: that worker died or hung, which counts as a lapse.
-- The due ones are an array, so that they are found by their key whatever the statistics of a queue that nobody has analysed yet.
update {q} q
set read_ct = q.read_ct + 1,
    vt = coalesce($1, now()) + make_interval(secs => $3),
    headers = coalesce(q.headers, '{}') || jsonb_build_object('by', $4::text, 'since', coalesce($1, now()))
        || case when q.headers ? 'by' then jsonb_build_object('lapses', coalesce((q.headers ->> 'lapses')::int, 0) + 1) else '{}' end
where q.msg_id = any (array(
    select msg_id from {q}
    where vt <= coalesce($1, now())
    order by vt limit $2
    for update skip locked
))
returning q.msg_id, q.read_ct, q.enqueued_at, q.message, coalesce((q.headers ->> 'waits')::int, 0) as waits,
    coalesce((q.headers ->> 'lapses')::int, 0) as lapses
