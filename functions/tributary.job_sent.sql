-- tributary.job_sent.sql: sets the job of a message that is sent again back to pending. Somebody retried it or connected its source anew, so a mailbox
-- does not wait any more for what it waited for when its job was given up.
-- Its trigger is on a table of pgmq's (store::migrate).
create or replace function tributary.job_sent() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update public.sync_jobs j set status = 'pending', step = null, error_message = null, finished_at = null, updated_at = now()
    where j.id = (new.message ->> 'job_id')::uuid and j.tenant_id = (new.message ->> 'tenant_id')::uuid
        and j.status in ('failed', 'cancelled', 'paused')
        -- While another job is live this one stays ended, and its lane ends the message.
        and not exists (select from public.sync_jobs o where o.source_id = j.source_id and o.id <> j.id
            and o.status in ('pending', 'running', 'paused') and (o.kind = 'backfill') = (j.kind = 'backfill'));
    if found then
        update public.pending_syncs p set not_before = null
        where p.source_id = (new.message ->> 'source_id')::uuid and p.tenant_id = (new.message ->> 'tenant_id')::uuid;
    end if;
    return null;
end $$;
revoke execute on function tributary.job_sent() from public;
