-- activities_flow.sql: counts tenant $1's events of the day (UTC) of $2 (default now), those that wait, and those given up, up to $3 of each. Each count goes
-- along an index and stops; without an order, a plan may read the table until it has met so many. Those given up are found by their dead letters, as in
-- dead_letters_count.sql. (Under row security a coalesce is not an index condition, but a subselect's result is.)
with letters as materialized (
    select original_activity_id as id from public.activity_failures where tenant_id = $1 order by original_activity_id limit $3
)
select
    (select count(*) from (
        select from public.activities
        where tenant_id = $1 and created_at >= (select date_trunc('day', coalesce($2, now()), 'UTC'))
        order by created_at desc limit $3) a) as today,
    (select count(*) from (
        select from public.activities where tenant_id = $1 and processing_status = 'raw' order by sales_id, created_at limit $3) a) as waiting,
    case when (select count(*) from letters) >= $3 then $3 else (
        select count(distinct l.id) from letters l where exists (
            select from public.activities a where a.tenant_id = $1 and a.id = l.id and a.processing_status = 'failed' offset 0)) end as failed,
    exists (select from public.activities where tenant_id = $1) as has_any
