-- sources_list.sql: tenant $1's accounts at providers, the oldest first, or just source $2; with what runs and, if $3, how much they hold, counted up to $4
-- (null: all).
select s.id, s.tenant_id, s.provider, s.name, s.account, s.status, s.status_message, s.status_at, s.transport, s.token_expires_at, s.cursors,
    extract(epoch from s.sync_every)::float8 as sync_every_secs, s.next_sync_at, s.last_successful_sync_at, s.created_at,
    s.subscription_expires_at, s.subscription_due_at, s.subscription_trouble, s.provider_subscription_id,
    greatest(s.last_notice_at, (select p.requested_at from public.pending_syncs p where p.tenant_id = s.tenant_id and p.source_id = s.id)) as last_notice_at,
    case when not $3::boolean then 0
        when $4::bigint is null then (select count(*) from public.source_documents d
            where d.tenant_id = s.tenant_id and d.source_id = s.id and d.deleted_at is null)
        else (select count(*) from (select from public.source_documents d
            where d.tenant_id = s.tenant_id and d.source_id = s.id and d.deleted_at is null order by d.external_id limit $4) d) end as n_documents,
    case when $3 then (select count(*) from (select from public.sync_failures f
        where f.tenant_id = s.tenant_id and f.source_id = s.id and f.skipped_at is null order by f.external_id limit $4) f) else 0 end as n_failures,
    (select j.id from public.sync_jobs j where j.tenant_id = s.tenant_id and j.source_id = s.id
        and j.status in ('pending', 'running', 'paused') order by j.id desc limit 1) as live_job
from public.connected_sources s
where s.tenant_id = $1 and ($2::uuid is null or s.id = $2) and s.provider not in ('channel', 'manual')
order by s.created_at, s.id
