-- tributary.sees_all_activities.sql: whether the caller sees every activity of its tenant. A key that is an agent's alone sees what it may process.
create or replace function tributary.sees_all_activities() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$ select coalesce(tributary.claims() -> 'scopes' ?| array['read', 'write', 'service'], false) $$;
revoke execute on function tributary.sees_all_activities() from public;
grant execute on function tributary.sees_all_activities() to authenticated, service_role;
