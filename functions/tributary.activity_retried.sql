-- tributary.activity_retried.sql: removes the dead letter of an activity that is processed again, so that it can be retried and buried again.
create or replace function tributary.activity_retried() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from public.activity_failures f where f.tenant_id = new.tenant_id and f.original_activity_id = new.id;
    return null;
end $$;
revoke execute on function tributary.activity_retried() from public;
create or replace trigger activity_retried after update on public.activities
    for each row when (old.processing_status = 'failed' and new.processing_status = 'raw') execute function tributary.activity_retried();
