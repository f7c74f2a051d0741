-- waiting_paces.sql: by type, the time from arrival to result of tenant $1's newest $2 activities (the first quartile), and the time from one result
-- to the next (the median). So an activity that lay overnight does not count.
with newest as materialized (
    select a.type, a.processing_status, a.created_at, a.updated_at from public.activities a
    where a.tenant_id = $1 order by a.created_at desc limit $2
), done as (
    select n.type, extract(epoch from n.updated_at - n.created_at) as took,
        extract(epoch from n.updated_at - lag(n.updated_at) over (partition by n.type order by n.updated_at)) as gap
    from newest n where n.processing_status = 'completed'
)
select d.type, percentile_cont(0.25) within group (order by d.took)::float8 as took_secs, percentile_cont(0.5) within group (order by d.gap)::float8 as gap_secs
from done d group by d.type
