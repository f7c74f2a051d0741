-- memory.read_codes.sql: returns the caller's codes with the ids `p_ids`; those that others have replaced are left out.
create or replace function memory.read_codes(p_model text, p_ids bigint[]) returns table (id bigint, bytes bytea)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select c.id, c.bytes from memory.codes c where c.tenant_id = tributary.tenant() and c.model = p_model and c.id = any (p_ids)
$$;
revoke execute on function memory.read_codes(text, bigint[]) from public;
grant execute on function memory.read_codes(text, bigint[]) to service_role, authenticated;
