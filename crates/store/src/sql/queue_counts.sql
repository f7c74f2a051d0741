-- queue_counts.sql: how many items of tenant $2 (and those that name none when $3) are in which state, and since when the oldest is due.
select state, count(*) as n, min(due) as oldest from (
    select case when headers ? 'by' and vt > coalesce($1, now()) then 'working'
                when headers ? 'error' then 'failed'
                else 'waiting' end as state, vt as due
    from {q} where message ->> 'tenant_id' = $2 or ($3 and not message ? 'tenant_id')
    union all
    select coalesce(headers ->> 'state', 'dead'), archived_at
    from {a} where message ->> 'tenant_id' = $2 or ($3 and not message ? 'tenant_id')
) items group by state
