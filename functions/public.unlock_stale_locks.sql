-- public.unlock_stale_locks.sql: gives back the locks that nobody renewed for 5 minutes; returns how many.
create or replace function public.unlock_stale_locks() returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$ select tributary.recover_locks(interval '5 minutes') $$;
revoke execute on function public.unlock_stale_locks() from public;
grant execute on function public.unlock_stale_locks() to service_role, authenticated;
