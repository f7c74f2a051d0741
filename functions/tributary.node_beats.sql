-- tributary.node_beats.sql: takes a device's heartbeat: for the caller's own person alone, and by our clock.
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
    -- What a person sets on a page is no sign of the device's life.
    if tg_op = 'UPDATE' and (new.enabled, new.concurrency) is distinct from (old.enabled, old.concurrency) then
        new.last_heartbeat := old.last_heartbeat;
    else
        new.last_heartbeat := clock_timestamp();
    end if;
    return new;
end $$;
create or replace trigger node_beats before insert or update on public.crm_processing_nodes
    for each row execute function tributary.node_beats();
