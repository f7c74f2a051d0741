-- memory.free_pointer.sql: waits until nobody writes vectors of the tenant, and keeps writers away until the end of the transaction. Returns false if
-- that takes longer than two seconds: new writers wait behind this one.
create or replace function memory.free_pointer(p_tenant uuid) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform set_config('lock_timeout', '2s', true);
    perform pg_advisory_xact_lock(hashtextextended('memory.pointer ' || p_tenant, 0));
    return true;
exception when lock_not_available then
    return false;
end $$;
revoke execute on function memory.free_pointer(uuid) from public;
grant execute on function memory.free_pointer(uuid) to service_role;
