-- activities_per_bucket.sql: counts tenant $1's activities in each of the last $5 stretches of $4 seconds, up to $3 of each, oldest first, that of $2
-- (default now) last. They begin with the clock's minutes and hours, so a past count does not change. (Materialized: under row security only a finished
-- time is an index condition.)
with buckets as materialized (
    select b as begins, b + make_interval(secs => $4) as ends
    from generate_series(
        date_bin(make_interval(secs => $4), coalesce($2, now()), timestamptz '2000-01-01 00:00+00') - make_interval(secs => $4 * ($5 - 1)),
        coalesce($2, now()), make_interval(secs => $4)) b
)
select b.begins, n.n
from buckets b cross join lateral (
    select count(*) as n from (
        select from public.activities a where a.tenant_id = $1 and a.created_at >= b.begins and a.created_at < b.ends
        order by a.created_at limit $3) some_activities
) n
order by b.begins
