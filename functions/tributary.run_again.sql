-- tributary.run_again.sql: starts the sync that was requested while a job of the same source ran, when that job ends.
create or replace function tributary.run_again() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    next jsonb := new.asked_again -> 0;
    rest jsonb := nullif(new.asked_again - 0, '[]');
begin
    -- If the source is not synced now, the request stays with its job, which goes on when the source is connected again.
    if not exists (select from public.connected_sources s
        where s.tenant_id = new.tenant_id and s.id = new.source_id and s.status in ('active', 'provider_error', 'subscription_expired')) then
        return null;
    end if;
    insert into public.sync_jobs (id, tenant_id, source_id, kind, requested_by, checkpoint_data, asked_again, created_at, updated_at)
    values ((next ->> 'id')::uuid, new.tenant_id, new.source_id, next ->> 'kind', next ->> 'by',
        case when next ? 'items' then jsonb_build_object('items', next -> 'items') else '{}' end, rest, new.updated_at, new.updated_at)
    on conflict do nothing; -- another job of the source has begun
    if found then
        insert into pgmq.q_ingestion_queue (vt, message) values (now(), jsonb_build_object('tenant_id', new.tenant_id,
            'source_id', new.source_id, 'job_id', next ->> 'id', 'kind', next ->> 'kind'));
    end if;
    -- What is asked of this job when it is sent again is a new ask.
    update public.sync_jobs set asked_again = null where tenant_id = new.tenant_id and id = new.id;
    return null;
end $$;
revoke execute on function tributary.run_again() from public;
create or replace trigger run_again after update of status on public.sync_jobs for each row
    when (new.asked_again is not null and old.status in ('pending', 'running', 'paused') and new.status in ('completed', 'failed', 'cancelled'))
    execute function tributary.run_again();
