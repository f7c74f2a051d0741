-- public.historical_sync_jobs.sql: the view of backfills, under their old name.
create or replace view public.historical_sync_jobs with (security_invoker = true) as
select j.id, j.tenant_id, s.provider as integration_id, j.source_id as source_connection_id, j.status, j.priority, j.progress_percentage,
    j.items_processed as records_processed, j.items_total as records_total, j.entities_extracted, j.relationships_extracted, j.last_heartbeat,
    j.checkpoint_data, j.error_message as last_error, j.error_count, j.max_retries, j.started_at, j.finished_at, j.created_at, j.updated_at
from public.sync_jobs j join public.connected_sources s on s.tenant_id = j.tenant_id and s.id = j.source_id
where j.kind = 'backfill';
grant select on public.historical_sync_jobs to service_role, authenticated;
