-- queue_depths.sql: how many items of queue $2 are in which state at $1, over all tenants. For metrics.
select state, count(*) as n from (
    select case when headers ? 'by' and vt > coalesce($1, now()) then 'working'
                when headers ? 'error' then 'failed'
                else 'waiting' end as state
    from {q}
    union all
    select coalesce(headers ->> 'state', 'dead') from {a}
    union all
    select 'parked' from tributary.parked where queue = $2
) items group by state
