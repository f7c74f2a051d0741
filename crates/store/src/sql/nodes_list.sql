-- nodes_list.sql: tenant $1's devices, the latest heartbeat first, how long each has been silent at $2 (default now), and how many activities its
-- person holds. (Few activities are held, and their index contains nothing else.)
with held as materialized (
    select a.locked_by, count(*) as n from public.activities a
    where a.tenant_id = $1 and a.processing_status = 'processing'
    group by a.locked_by
)
select n.id, n.sales_id, n.app_name, n.device_name, n.status, n.current_activity_id, n.processed_count, n.last_heartbeat, n.enabled, n.concurrency,
    n.created_at, extract(epoch from coalesce($2, clock_timestamp()) - n.last_heartbeat)::float8 as silent_secs, coalesce(h.n, 0) as held
from public.crm_processing_nodes n
join public.sales s on s.tenant_id = n.tenant_id and s.id = n.sales_id
left join held h on h.locked_by = s.user_id
where n.tenant_id = $1
order by n.last_heartbeat desc, n.id
limit $3
