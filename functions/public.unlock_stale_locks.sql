-- public.unlock_stale_locks.sql: releases the locks that nobody renewed for UNLOCK_AFTER (domain::activity); returns their number.
create or replace function public.unlock_stale_locks() returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$ select count(*)::int from tributary.recover_activities(false) $$;
revoke execute on function public.unlock_stale_locks() from public;
grant execute on function public.unlock_stale_locks() to service_role, authenticated;
