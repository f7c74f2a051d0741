-- activities_per_minute.sql: counts tenant $1's activities in each of the last 60 minutes, oldest first, the minute of $2 (default now) last.
-- Minutes begin with the clock's minute, so a past count does not change. (Under row security a coalesce is not an index condition, but a
-- subselect's result is.)
with by_minute as (
    select date_trunc('minute', created_at) as minute, count(*) as n
    from public.activities
    where tenant_id = $1 and created_at >= (select date_trunc('minute', coalesce($2, now())) - interval '59 minutes')
    group by 1
)
select coalesce(b.n, 0)
from generate_series(date_trunc('minute', coalesce($2, now())) - interval '59 minutes', coalesce($2, now()), interval '1 minute') m (minute)
left join by_minute b using (minute)
order by m.minute
