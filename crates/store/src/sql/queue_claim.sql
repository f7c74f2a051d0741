-- queue_claim.sql: claims up to $2 due messages for $3 seconds in the name of $4, each tenant its share. $1: a fixed clock.
-- $5: after which share the last claim stopped; the new one comes with each row. $6, $7: only shares between these two, both excluded.
-- No row: nothing is due. One row without a message: others hold all that was looked at; `is_all` says whether that is all there is.
-- A share is a number per tenant. The index on (share, vt) finds the next tenant and its first message in one step.
with recursive walk (nth, share, vt, is_wrapped, n_due) as (
    -- From $5 to the last share, then from the first one to $5. It ends when the batch has a message of as many tenants as it can hold, or
    -- after 64 tenants if any of them has due messages.
    select 0, $5::bigint, 'infinity'::timestamptz, false, 0
    union all
    select w.nth + 1, next.share, next.vt, next.is_wrapped, w.n_due + (next.vt <= coalesce($1, now()))::int
    from walk w cross join lateral (
        (select {share} as share, vt, false as is_wrapped from {q}
            where not w.is_wrapped and {share} > w.share and {share} < $7::bigint order by {share}, vt limit 1)
        union all
        (select {share}, vt, true from {q}
            where {share} > case when w.is_wrapped then w.share else $6::bigint end and {share} <= $5 order by {share}, vt limit 1)
        limit 1
    ) next
    where w.n_due < $2 and (w.nth < 64 or w.n_due = 0)
), due as (
    select share, n_due as rank, count(*) over () as n from walk where vt <= coalesce($1, now())
), fair as (
    -- The remainder goes to the first ones, and the next claim begins after them.
    select m.msg_id from due, lateral (
        select msg_id from {q} where {share} = due.share and vt <= coalesce($1, now())
        order by vt limit $2 / due.n + (due.rank <= $2 % due.n)::int for update skip locked
    ) m
), more as (
    -- Where some have less than their share: the rest of the same tenants.
    select m.msg_id from due, lateral (
        select msg_id from {q} where {share} = due.share and vt <= coalesce($1, now()) and msg_id <> all (array(select msg_id from fair))
        order by vt limit $2 - (select count(*) from fair) for update skip locked
    ) m
    limit $2 - (select count(*) from fair)
), taken as (
    update {q} q
    set read_ct = q.read_ct + 1,
        vt = coalesce($1, now()) + make_interval(secs => $3),
        -- A message that still names a holder was never settled: that worker died or hung, which counts as a lapse.
        headers = coalesce(q.headers, '{}') || (select jsonb_build_object('by', $4::text, 'since', coalesce($1, now())))
            || case when q.headers ? 'by' then jsonb_build_object('lapses', coalesce((q.headers ->> 'lapses')::int, 0) + 1) else '{}' end
    -- An array, so that the messages are found by their key whatever the statistics of a queue that was never analysed.
    where q.msg_id = any (array(select msg_id from fair union all select msg_id from more))
    returning q.msg_id, q.read_ct, q.enqueued_at, q.message, coalesce((q.headers ->> 'waits')::int, 0) as waits,
        coalesce((q.headers ->> 'lapses')::int, 0) as lapses
)
select t.*, d.share as stopped_after,
    (select w.n_due < $2 and (w.nth < 64 or w.n_due = 0) from walk w order by w.nth desc limit 1) as is_all
from due d left join taken t on true
where d.rank = case when exists (select from taken) then coalesce(nullif($2 % d.n, 0), d.n) else d.n end
