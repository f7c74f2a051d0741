-- activities_flow.sql: how many events of tenant $1 arrived on the day (UTC) of $2 (default now), and how many are in whose hands. Each count by an index:
-- those given up are looked up from their dead letters. (Under a policy a coalesce is no index condition; a subselect's result is.)
select
    (select count(*) from public.activities
     where tenant_id = $1 and created_at >= (select date_trunc('day', coalesce($2, now()), 'UTC'))) as today,
    (select count(*) from public.activities where tenant_id = $1 and processing_status = 'raw') as waiting,
    (select count(distinct a.id) from public.activity_failures f
     join public.activities a on a.tenant_id = f.tenant_id and a.id = f.original_activity_id
     where f.tenant_id = $1 and a.processing_status = 'failed') as failed,
    exists (select from public.activities where tenant_id = $1) as has_any
