-- node_change.sql: sets `enabled` and `concurrency` of tenant $1's device $2 to $3 and $4, where they are given. It is no heartbeat.
update public.crm_processing_nodes n
set enabled = coalesce($3, n.enabled), concurrency = coalesce($4, n.concurrency)
where n.tenant_id = $1 and n.id = $2
