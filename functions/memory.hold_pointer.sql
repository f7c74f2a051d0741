-- memory.hold_pointer.sql: keeps the tenant's searches from switching to another model until the end of the transaction, and returns the model that
-- they use and the one that the memory moves to. Whoever writes vectors calls this first, and starts again if the models are not those it made them for.
create or replace function memory.hold_pointer(p_tenant uuid, out model text, out to_model text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_advisory_xact_lock_shared(hashtextextended('memory.pointer ' || p_tenant, 0));
    -- A statement of its own: it sees what was committed while the lock was waited for.
    select t.model, m.to_model into model, to_model from memory.tenants t
    left join memory.moves m on m.tenant_id = t.tenant_id and m.state in ('embedding', 'indexing')
    where t.tenant_id = p_tenant;
end $$;
revoke execute on function memory.hold_pointer(uuid) from public;
grant execute on function memory.hold_pointer(uuid) to service_role;
