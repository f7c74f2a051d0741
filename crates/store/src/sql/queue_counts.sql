-- queue_counts.sql: how many items of tenant $2 (and those that name none when $3) are in which state, and since when the oldest is due. $4: the most
-- that is counted of each: due ones, those that are held or wait, and each state of the archive. A figure of $4 or more means "at least".
-- It reads a part of the index on (share, vt) for each of the tenant's shares, live and history, and of the archive's index by tenant and state.
with shares as (
    select name.id, (hashtext(name.id)::bigint & 2147483647) + h.base as share
    from (select $2::text as id union all select '' where $3) name, (values (0::bigint), (4294967296)) h (base)
), items as (
    select i.headers, i.vt from shares s cross join lateral (
        select headers, vt from {q} where {share} = s.share and vt <= coalesce($1, now()) and coalesce(message ->> 'tenant_id', '') = s.id
        order by vt limit $4) i
    union all
    select i.headers, i.vt from shares s cross join lateral (
        select headers, vt from {q} where {share} = s.share and vt > coalesce($1, now()) and coalesce(message ->> 'tenant_id', '') = s.id
        order by vt limit $4) i
)
select case when headers ? 'by' and vt > coalesce($1, now()) then 'working'
            when headers ? 'error' then 'failed'
            else 'waiting' end as state, count(*) as n, min(vt) as oldest
from items group by 1
union all
select e.state, count(*), null from (select distinct id from shares) t cross join (values ('dead'), ('skipped'), ('cancelled')) e (state)
cross join lateral (
    select from {a} where {archived_of} = t.id and {archived_state} = e.state order by msg_id limit $4) i
group by e.state
