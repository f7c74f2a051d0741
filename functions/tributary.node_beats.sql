-- tributary.node_beats.sql: stores a device's heartbeat, only for the caller's own person and with the database's time.
create or replace function tributary.node_beats() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    claims jsonb := tributary.claims();
begin
    if current_user = 'authenticated' then
        new.sales_id := coalesce(new.sales_id, (claims ->> 'sales_id')::bigint);
        if not coalesce(claims -> 'scopes' ? 'service', false) and new.sales_id is distinct from (claims ->> 'sales_id')::bigint then
            raise exception 'this key beats for its own person alone' using errcode = 'insufficient_privilege';
        end if;
    end if;
    -- A change that a person makes on a page is not a heartbeat.
    if tg_op = 'UPDATE' and (new.enabled, new.concurrency) is distinct from (old.enabled, old.concurrency) then
        new.last_heartbeat := old.last_heartbeat;
    else
        new.last_heartbeat := clock_timestamp();
        -- Most heartbeats change nothing that a page shows, and then no notice is needed.
        if tg_op = 'INSERT' or (new.status, new.current_activity_id) is distinct from (old.status, old.current_activity_id)
            or old.last_heartbeat < now() - {{HEARD_WITHIN}} then
            new.shown_at := new.last_heartbeat;
        end if;
    end if;
    return new;
end $$;
create or replace trigger node_beats before insert or update on public.crm_processing_nodes
    for each row execute function tributary.node_beats();
