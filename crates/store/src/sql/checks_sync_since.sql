-- checks_sync_since.sql: how far the syncs of tenant $1's mailbox $2 are that are newer than job $3 (null: all): whether one that reads everything that
-- changed has come to its end, whether any job is live, and whether one that reads single letters is to come or under way.
select
    exists (select from public.sync_jobs j where j.tenant_id = $1 and j.source_id = $2 and ($3::uuid is null or j.id > $3) and j.status = 'completed'
        and j.kind <> 'backfill' and coalesce(jsonb_array_length(j.checkpoint_data -> 'items'), 0) = 0) as is_done,
    exists (select from public.sync_jobs j where j.tenant_id = $1 and j.source_id = $2 and j.kind <> 'backfill'
        and j.status in ('pending', 'running', 'paused')) as is_live,
    exists (select from public.sync_jobs j where j.tenant_id = $1 and j.source_id = $2 and j.kind <> 'backfill'
        and j.status in ('pending', 'running', 'paused')
        and (coalesce(jsonb_array_length(j.checkpoint_data -> 'items'), 0) > 0
            or exists (select from jsonb_array_elements(coalesce(j.asked_again, '[]')) a
                where coalesce(jsonb_array_length(a -> 'items'), 0) > 0))) as reads_single
