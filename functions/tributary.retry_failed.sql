-- tributary.retry_failed.sql: retries failed activities as retry_activities does; returns the number that are processed again.
-- Only processes of schema 11 call it.
create or replace function tributary.retry_failed(p_at timestamptz default null) returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$ select count(*)::int from tributary.retry_activities(p_at) r where not r.is_dead $$;
revoke execute on function tributary.retry_failed(timestamptz) from public;
grant execute on function tributary.retry_failed(timestamptz) to service_role;
