-- jobs_list.sql: up to $6 of tenant $1's jobs, the newest first: just job $2, those of source $3, those in status $4, those older than $5.
select j.id, j.tenant_id, j.source_id, s.name as source_name, s.provider as source_provider, j.kind, j.status, j.requested_by, j.step, j.note,
    j.items_processed, j.items_failed, j.items_total, j.n_created, j.n_updated, j.n_unchanged, j.n_deleted, j.n_kept_out, j.checkpoint_data, j.error_message,
    j.error_details, j.error_count, j.embed_calls, j.embed_texts, j.embed_tokens, j.cost_micros, j.last_heartbeat, j.started_at, j.finished_at,
    j.created_at, j.updated_at
from public.sync_jobs j join public.connected_sources s on s.tenant_id = j.tenant_id and s.id = j.source_id
where j.tenant_id = $1 and ($2::uuid is null or j.id = $2) and ($3::uuid is null or j.source_id = $3) and ($4::text is null or j.status = $4)
    and ($5::uuid is null or j.id < $5)
order by j.id desc limit $6
