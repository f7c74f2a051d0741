-- tributary.job_archived.sql: ends the job of an archived message: the job of a dead letter has failed, that of a message ended by a person is cancelled.
-- Its trigger is on a table of pgmq's (store::migrate).
create or replace function tributary.job_archived() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update public.sync_jobs j
    set status = case when coalesce(new.headers ->> 'state', 'dead') = 'dead' then 'failed' else 'cancelled' end,
        error_message = case when coalesce(new.headers ->> 'state', 'dead') = 'dead' then coalesce(j.error_message, 'max_retries_exceeded')
            else j.error_message end,
        step = null, finished_at = now(), updated_at = now()
    where j.id = (new.message ->> 'job_id')::uuid and j.tenant_id = (new.message ->> 'tenant_id')::uuid
        and j.status in ('pending', 'running', 'paused');
    return null;
end $$;
revoke execute on function tributary.job_archived() from public;
