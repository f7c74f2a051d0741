-- queue_oldest_due.sql: since when the longest waiting message is or will be due. One step per tenant, by the index on (share, vt).
with recursive first (share, vt) as (
    (select {share}, vt from {q} order by {share}, vt limit 1)
    union all
    select next.share, next.vt
    from first, lateral (select {share} as share, vt from {q} where {share} > first.share order by {share}, vt limit 1) next
)
select min(vt) from first
