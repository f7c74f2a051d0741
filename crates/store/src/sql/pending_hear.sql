-- pending_hear.sql: notes that something was heard of the mailboxes $2 of the tenants $1: adds a row, or moves the time of the one that is there, and touches
-- nothing else of it. A new row waits for $4 seconds after the mailbox was last read, and for $5 seconds from now. Mailboxes that are not synced are left out.
insert into public.pending_syncs as p (source_id, tenant_id, requested_at, not_before)
select s.id, s.tenant_id, coalesce($3, now()),
    greatest(case when s.last_successful_sync_at + make_interval(secs => $4) > coalesce($3, now())
            then s.last_successful_sync_at + make_interval(secs => $4) end,
        coalesce($3, now()) + make_interval(secs => nullif($5::float8, 0)))
from unnest($1::uuid[], $2::uuid[]) as heard (tenant_id, source_id)
join public.connected_sources s on s.tenant_id = heard.tenant_id and s.id = heard.source_id
where s.status in ('active', 'provider_error', 'subscription_expired')
order by s.id
on conflict (source_id) do update
    set requested_at = greatest(excluded.requested_at, p.requested_at + interval '1 microsecond', p.claimed_at + interval '1 microsecond')
returning p.tenant_id, p.source_id, p.xmax = 0 as is_new
