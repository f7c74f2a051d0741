-- node_change.sql: sets `enabled` and `concurrency` of tenant $1's device $2 to $3 and $4, where they are given. A trigger takes every write for a
-- heartbeat, so a device that was silent is written down as offline: else it would look alive, and keep its lock, for two minutes.
update public.crm_processing_nodes n
set enabled = coalesce($3, n.enabled), concurrency = coalesce($4, n.concurrency),
    status = case when n.last_heartbeat < now() - interval '2 minutes' then 'offline' else n.status end,
    current_activity_id = case when n.last_heartbeat < now() - interval '2 minutes' then null else n.current_activity_id end
where n.tenant_id = $1 and n.id = $2
