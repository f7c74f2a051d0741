-- tributary.has_activity.sql: whether the caller's tenant has one of these activities, also one that the caller does not see.
-- It tells a claim that was lost from an id that nobody has.
create or replace function tributary.has_activity(p_ids uuid[]) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    -- By the ids alone: with an index on the tenant, PostgreSQL might read all of its rows.
    select exists (select from public.activities a where a.id = any (p_ids) and (a.tenant_id = (select tributary.tenant())) is true)
$$;
revoke execute on function tributary.has_activity(uuid[]) from public;
grant execute on function tributary.has_activity(uuid[]) to authenticated, service_role;
