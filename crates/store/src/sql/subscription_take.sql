-- subscription_take.sql: up to $3 mailboxes of the providers $2 whose subscription is to be made or renewed, those that have waited longest first. Each is left to
-- the caller for $4 seconds.
with due as (
    select tenant_id, id from public.connected_sources
    where provider = any($2) and status in ('active', 'provider_error', 'subscription_expired') and transport = 'rest'
        and not exists (select from public.tenants t where t.id = connected_sources.tenant_id and t.forgetting_at is not null)
        and coalesce(subscription_due_at, '-infinity') <= coalesce($1, now())
    order by coalesce(subscription_due_at, '-infinity') limit $3 for no key update skip locked)
update public.connected_sources s set subscription_due_at = coalesce($1, now()) + make_interval(secs => $4)
from due where s.tenant_id = due.tenant_id and s.id = due.id
returning s.tenant_id, s.id, s.provider, coalesce(s.account, '') as account, s.provider_subscription_id, s.subscription_expires_at,
    s.webhook_client_state as client_state, s.subscription_failures as failures
