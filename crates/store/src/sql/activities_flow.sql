-- activities_flow.sql: counts tenant $1's events of the day (UTC) of $2 (default now), those that wait, and those given up. Each count uses an
-- index: those given up are found by their dead letters. (Under row security a coalesce is not an index condition, but a subselect's result is.)
select
    (select count(*) from public.activities
     where tenant_id = $1 and created_at >= (select date_trunc('day', coalesce($2, now()), 'UTC'))) as today,
    (select count(*) from public.activities where tenant_id = $1 and processing_status = 'raw') as waiting,
    (select count(distinct a.id) from public.activity_failures f
     join public.activities a on a.tenant_id = f.tenant_id and a.id = f.original_activity_id
     where f.tenant_id = $1 and a.processing_status = 'failed') as failed,
    exists (select from public.activities where tenant_id = $1) as has_any
