-- activities_per_minute.sql: counts tenant $1's activities in each of the last 60 minutes, up to $3 of each, oldest first, the minute of $2 (default now)
-- last. Minutes begin with the clock's minute, so a past count does not change. (Materialized: under row security only a finished time is an index
-- condition.)
with minutes as materialized (
    select m as begins, m + interval '1 minute' as ends
    from generate_series(date_trunc('minute', coalesce($2, now())) - interval '59 minutes', coalesce($2, now()), interval '1 minute') m
)
select n.n
from minutes m cross join lateral (
    select count(*) as n from (
        select from public.activities a where a.tenant_id = $1 and a.created_at >= m.begins and a.created_at < m.ends
        order by a.created_at limit $3) some_activities
) n
order by m.begins
