-- subscription_lapse.sql: marks mailboxes of the providers $2 whose subscription has ended, or could not be made. They are polled until there is another.
update public.connected_sources s
set status = 'subscription_expired', status_message = s.subscription_trouble, status_at = coalesce($1, now()),
    next_sync_at = least(s.next_sync_at, coalesce($1, now()) + s.sync_every)
where s.provider = any($2) and s.status = 'active' and s.transport = 'rest'
    and (s.subscription_expires_at <= coalesce($1, now()) or (s.subscription_expires_at is null and s.subscription_failures > 0))
returning s.tenant_id, s.id
