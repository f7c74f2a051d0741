-- memory.hold_pointer.sql: keeps the tenant's searches from switching to another model, and its texts from getting another language, until the end of the
-- transaction. Returns the model that they use, the one that the memory moves to, and the language that the tenant has fixed. Whoever writes documents or
-- vectors calls this first, and starts again if these are not what it prepared them for.
-- Made anew: it once returned no language.
drop function if exists memory.hold_pointer(uuid);
create function memory.hold_pointer(p_tenant uuid, out model text, out to_model text, out lang text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_advisory_xact_lock_shared(hashtextextended('memory.pointer ' || p_tenant, 0));
    -- A statement of its own: it sees what was committed while the lock was waited for.
    select t.model, m.to_model, t.lang::text into model, to_model, lang from memory.tenants t
    left join memory.moves m on m.tenant_id = t.tenant_id and m.state in ('embedding', 'indexing')
    where t.tenant_id = p_tenant;
end $$;
revoke execute on function memory.hold_pointer(uuid) from public;
grant execute on function memory.hold_pointer(uuid) to service_role;
