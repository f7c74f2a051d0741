-- public.claim_stale_activity.sql: claims up to p_limit raw activities older than STALE_AFTER (domain::activity), the oldest first.
-- These are the person's own, those without an owner, and those of owners who allow it.
-- `p_source_types` limits the kinds of content that are claimed: an agent that cannot transcribe leaves calls to others.
-- The form with two arguments is dropped: beside this one, a call with two arguments would be ambiguous.
drop function if exists public.claim_stale_activity(bigint, int);
create or replace function public.claim_stale_activity(p_agent_sales_id bigint default null, p_limit int default 1, p_source_types text[] default null)
returns table (id uuid, raw_data jsonb, type text, is_global boolean, lock_epoch int)
language sql security definer
set search_path = pg_catalog, pg_temp
as $$ select * from tributary.claim_activities(tributary.agent(p_agent_sales_id), p_limit, p_source_types, true) $$;
revoke execute on function public.claim_stale_activity(bigint, int, text[]) from public;
grant execute on function public.claim_stale_activity(bigint, int, text[]) to service_role, authenticated;
