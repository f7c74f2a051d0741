-- tributary.node_holds_on.sql: renews the lock of the activity that a device says it works on.
create or replace function tributary.node_holds_on() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update public.activities a set locked_at = now()
    from public.sales s
    where s.tenant_id = new.tenant_id and s.id = new.sales_id and a.tenant_id = new.tenant_id and a.id = new.current_activity_id
        and a.processing_status = 'processing' and a.locked_by = s.user_id;
    return null;
end $$;
revoke execute on function tributary.node_holds_on() from public;
create or replace trigger node_holds_on after insert on public.crm_processing_nodes
    for each row when (new.current_activity_id is not null and new.status = 'processing') execute function tributary.node_holds_on();
create or replace trigger node_holds_on_still after update on public.crm_processing_nodes
    for each row when (new.current_activity_id is not null and new.status = 'processing' and new.last_heartbeat is distinct from old.last_heartbeat)
    execute function tributary.node_holds_on();
