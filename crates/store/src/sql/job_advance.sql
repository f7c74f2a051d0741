-- job_advance.sql: moves tenant $1's running job $2 on by one page: what it is ($3), where it goes on ($4), what it does next ($5, $6) and what was added.
update public.sync_jobs
set kind = $3, checkpoint_data = $4, step = $5, note = coalesce($6, note),
    items_processed = items_processed + $7 + $8 + $9 + $10 + $17, n_created = n_created + $7, n_updated = n_updated + $8, n_unchanged = n_unchanged + $9,
    n_deleted = n_deleted + $10, n_kept_out = n_kept_out + $17, items_failed = items_failed + $11, embed_calls = embed_calls + $12, embed_texts = embed_texts + $13,
    embed_tokens = embed_tokens + $14, cost_micros = cost_micros + $15, last_heartbeat = coalesce($16, now()), updated_at = coalesce($16, now())
where tenant_id = $1 and id = $2 and status = 'running'
