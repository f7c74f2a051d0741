-- queue_take_over.sql: makes the messages due that workers of the names $2 hold. $1: a fixed clock.
-- By the index on (share, vt): of each tenant only what is not due is read, however much waits.
with recursive shares (share) as (
    (select {share} from {q} order by {share} limit 1)
    union all
    select next.share
    from shares, lateral (select {share} as share from {q} where {share} > shares.share order by {share} limit 1) next
)
update {q} q set vt = coalesce($1, now())
where q.msg_id = any (array(
    select held.msg_id from shares, lateral (
        select msg_id from {q} where {share} = shares.share and vt > coalesce($1, now()) and headers ->> 'by' = any($2)
    ) held))
