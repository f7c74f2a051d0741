-- tributary.is_result.sql: returns whether an agent may store this as an activity's result, which people and search read.
create or replace function tributary.is_result(p_data jsonb) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_typeof(p_data) = 'object'
        and coalesce(jsonb_typeof(p_data -> 'transcript'), 'null') in ('string', 'null')
        and coalesce(jsonb_typeof(p_data -> 'summary'), 'null') in ('string', 'null')
        and coalesce(jsonb_typeof(p_data -> 'facts'), 'null') in ('array', 'null')
        and pg_column_size(p_data) <= 4194304, p_data is null)
$$;
revoke execute on function tributary.is_result(jsonb) from public;
grant execute on function tributary.is_result(jsonb) to authenticated, service_role;
