-- pending_due.sql: up to $2 mailboxes of which something was heard and that no sync is to read, those that have waited longest first.
select p.tenant_id, p.source_id from public.pending_syncs p
join public.connected_sources s on s.tenant_id = p.tenant_id and s.id = p.source_id
where s.status in ('active', 'provider_error', 'subscription_expired') and (p.not_before is null or p.not_before <= coalesce($1, now()))
    and not exists (select from public.sync_jobs j where j.source_id = p.source_id and j.kind <> 'backfill'
        and j.status in ('pending', 'running', 'paused'))
order by p.requested_at limit $2
