-- queue_depths.sql: how many items of queue $2 are in which state at $1, over all tenants, up to $3 rows each of queue, archive and parked ones.
-- Where the queue has more, its waiting ones are the rows that the server's statistics know of. For metrics.
with some_items as materialized (
    select case when headers ? 'by' and vt > coalesce($1, now()) then 'working'
                when headers ? 'error' then 'failed'
                else 'waiting' end as state
    from {q} limit $3
), archived as materialized (
    select {archived_state} as state from {a} limit $3
), items as (
    select state from some_items union all select state from archived
    union all
    (select 'parked' from tributary.parked where queue = $2 limit $3)
)
select state, case when state = 'waiting' and (select count(*) from some_items) = $3
    then greatest(count(*), pg_stat_get_live_tuples('{q}'::regclass)) else count(*) end as n
from items group by state
