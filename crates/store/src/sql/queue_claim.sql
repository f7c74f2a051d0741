-- queue_claim.sql: claims up to $2 due messages for $3 seconds in the name of $4, live ones before history, each tenant its share.
-- $1: a fixed clock. $5, $6: after which share the last claim stopped, of live messages and of history; the new ones come with each row.
-- A share is a number per tenant, from 2^32 on for its history. The index on (share, vt) finds the next tenant and its first message in one step.
with recursive walk (nth, share, vt, part, n_due) as (
    -- At most 64 tenants: live ones after $5 (part 0), from the start up to $5 (1), history after $6 (2), from its start up to $6 (3).
    select 0, $5::bigint, 'infinity'::timestamptz, 0, 0
    union all
    select w.nth + 1, next.share, next.vt, next.part, w.n_due + (next.vt <= coalesce($1, now()))::int
    from walk w cross join lateral (
        (select {share} as share, vt, 0 as part from {q}
            where w.part = 0 and {share} > w.share and {share} < {history} order by {share}, vt limit 1)
        union all
        (select {share}, vt, 1 from {q}
            where w.part <= 1 and {share} > case w.part when 1 then w.share else -1 end and {share} <= $5 order by {share}, vt limit 1)
        union all
        (select {share}, vt, 2 from {q}
            where w.part <= 2 and {share} > case w.part when 2 then w.share else $6 end order by {share}, vt limit 1)
        union all
        (select {share}, vt, 3 from {q}
            where {share} > case w.part when 3 then w.share else {history} - 1 end and {share} <= $6 order by {share}, vt limit 1)
        limit 1
    ) next
    where w.nth < 64 and w.n_due < $2
), due as (
    select share, n_due as rank, share < {history} as is_live from walk where vt <= coalesce($1, now())
), split as (
    -- Among the n live tenants with due messages, or among those of history where there are none. The remainder goes to the first ones,
    -- and the next claim begins after them.
    select n, n_live, $2 / n as each, $2 % n as remainder, case $2 % n when 0 then n else $2 % n end as last
    from (select count(*) filter (where is_live) as n_live, coalesce(nullif(count(*) filter (where is_live), 0), nullif(count(*), 0)) as n from due) d
), fair as (
    select m.msg_id from due, split, lateral (
        select msg_id from {q} where {share} = due.share and vt <= coalesce($1, now())
        order by vt limit split.each + (due.rank <= split.remainder)::int for update skip locked
    ) m
    where due.rank <= split.n
), more as (
    -- Where some have less than their share: the rest of the same tenants, live before history.
    select m.msg_id from due, lateral (
        select msg_id from {q} where {share} = due.share and vt <= coalesce($1, now()) and msg_id <> all (array(select msg_id from fair))
        order by vt limit $2 - (select count(*) from fair) for update skip locked
    ) m
    limit $2 - (select count(*) from fair)
), oldest as (
    -- Due messages of tenants that the walk did not reach. An empty answer means that nothing is due.
    select msg_id from {q} where vt <= coalesce($1, now()) and msg_id <> all (array(select msg_id from fair union all select msg_id from more))
    order by vt limit $2 - (select count(*) from fair) - (select count(*) from more) for update skip locked
)
update {q} q
set read_ct = q.read_ct + 1,
    vt = coalesce($1, now()) + make_interval(secs => $3),
    -- A message that still names a holder was never settled: that worker died or hung, which counts as a lapse.
    headers = coalesce(q.headers, '{}') || (select jsonb_build_object('by', $4::text, 'since', coalesce($1, now())))
        || case when q.headers ? 'by' then jsonb_build_object('lapses', coalesce((q.headers ->> 'lapses')::int, 0) + 1) else '{}' end
-- An array, so that the messages are found by their key whatever the statistics of a queue that was never analysed.
where q.msg_id = any (array(select msg_id from fair union all select msg_id from more union all select msg_id from oldest))
returning q.msg_id, q.read_ct, q.enqueued_at, q.message, coalesce((q.headers ->> 'waits')::int, 0) as waits,
    coalesce((q.headers ->> 'lapses')::int, 0) as lapses,
    (select coalesce((select due.share from due, split where is_live and rank = last),
        (select w.share from walk w where w.nth > 0 and w.part <= 1 order by w.nth desc limit 1), $5)) as live_after,
    (select coalesce((select due.share from due, split where not is_live and rank = case n_live when 0 then last else n_live + 1 end),
        (select w.share from walk w where w.part >= 2 order by w.nth desc limit 1), $6)) as history_after
