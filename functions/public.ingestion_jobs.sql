-- public.ingestion_jobs.sql: the view of jobs that are not backfills, under their old name.
create or replace view public.ingestion_jobs with (security_invoker = true) as
select id, tenant_id, source_id, kind, status, items_processed, items_failed, error_message, error_details, started_at, finished_at,
    created_at, updated_at
from public.sync_jobs where kind <> 'backfill';
grant select on public.ingestion_jobs to service_role, authenticated;
