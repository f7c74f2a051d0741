-- tributary.sync_ended.sql: gives back what was heard of a mailbox when the sync that was to read it ends otherwise than well. One that was given up
-- is tried again after a while; one that a person ended is not, until something is heard again.
create or replace function tributary.sync_ended() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.status = 'cancelled' then
        delete from public.pending_syncs p where p.source_id = new.source_id and p.tenant_id = new.tenant_id
            and (p.claimed_at is null or p.requested_at <= p.claimed_at);
    end if;
    update public.pending_syncs p
    set status = 'pending', claimed_at = null,
        not_before = case when new.status = 'failed' then greatest(p.not_before, new.updated_at + interval '15 minutes') end
    where p.source_id = new.source_id and p.tenant_id = new.tenant_id;
    return null;
end $$;
revoke execute on function tributary.sync_ended() from public;
create or replace trigger sync_ended after update of status on public.sync_jobs for each row
    when (old.status in ('pending', 'running', 'paused') and new.status in ('failed', 'cancelled') and new.kind <> 'backfill'
        and coalesce(jsonb_array_length(new.checkpoint_data -> 'items'), 0) = 0) -- it was to read all that changed
    execute function tributary.sync_ended();
