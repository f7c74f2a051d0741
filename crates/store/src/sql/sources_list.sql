-- sources_list.sql: tenant $1's accounts at providers, the oldest first, or just source $2; with what runs and, if $3, how much they hold.
select s.id, s.tenant_id, s.provider, s.name, s.account, s.status, s.status_message, s.status_at, s.transport, s.token_expires_at, s.cursors,
    extract(epoch from s.sync_every)::float8 as sync_every_secs, s.next_sync_at, s.last_successful_sync_at, s.created_at,
    case when $3::boolean then (select count(*) from public.source_documents d
        where d.tenant_id = s.tenant_id and d.source_id = s.id and d.deleted_at is null) else 0 end as n_documents,
    case when $3 then (select count(*) from public.sync_failures f
        where f.tenant_id = s.tenant_id and f.source_id = s.id and f.skipped_at is null) else 0 end as n_failures,
    (select j.id from public.sync_jobs j where j.tenant_id = s.tenant_id and j.source_id = s.id
        and j.status in ('pending', 'running', 'paused') order by j.id desc limit 1) as live_job
from public.connected_sources s
where s.tenant_id = $1 and ($2::uuid is null or s.id = $2) and s.provider not in ('channel', 'manual')
order by s.created_at, s.id
