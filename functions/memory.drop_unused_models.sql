-- memory.drop_unused_models.sql: notes which models no tenant uses, and drops the tables of those that have been unused for an hour. Returns their names.
-- The models `p_keep` stay. A statement that was planned before the last switch thus never misses its table.
create or replace function memory.drop_unused_models(p_keep text[], p_now timestamptz) returns text[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    dropped text[] := '{}';
    unused text;
begin
    update memory.models m set unused_since = case when u.is_used then null else p_now end
    from (
        select name, name = any(p_keep) or exists (select from memory.tenants t where t.model = name)
            or exists (select from memory.moves v where name in (v.from_model, v.to_model)) as is_used
        from memory.models
    ) u
    where u.name = m.name and u.is_used = (m.unused_since is not null);
    for unused in select name from memory.models where unused_since <= p_now - interval '1 hour' loop
        begin
            -- The table refers to the chunks, so both are locked for a moment. If that is not possible at once, it is tried at the next tick.
            perform set_config('lock_timeout', '200ms', true), pg_advisory_xact_lock(hashtext('memory.ensure_model'));
            delete from memory.models where name = unused;
            delete from memory.codes where model = unused;
            delete from memory.fresh_vectors where model = unused;
            execute format('drop table memory.%I', 'vectors_' || unused); -- last: from here on the chunks are locked
            dropped := dropped || unused;
        exception when lock_not_available or foreign_key_violation then
            continue;
        end;
    end loop;
    return dropped;
end $$;
revoke execute on function memory.drop_unused_models(text[], timestamptz) from public;
grant execute on function memory.drop_unused_models(text[], timestamptz) to service_role;
