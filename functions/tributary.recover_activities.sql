-- tributary.recover_activities.sql: releases the locks that nobody renewed in time, or with `p_workers` those of these dead workers; returns up to
-- 1,000 activities that it changed.
-- Recoveries are counted: after {{MAX_RECOVERIES}} of them the activity is a dead letter, so that it does not crash agents for ever. A lock stays
-- with a device that sent a heartbeat lately: transcribing a call takes longer than a lock lasts. A dead worker's lock is released at once.
-- Drops the forms of earlier schemas.
drop function if exists tributary.recover_locks(interval);
-- The form without workers: beside this one a call with one argument would be ambiguous.
drop function if exists tributary.recover_activities(boolean);
create or replace function tributary.recover_activities(p_is_reset boolean, p_workers text[] default null)
returns table (tenant_id uuid, id uuid, is_dead boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    locked_before timestamptz := case when p_workers is not null then 'infinity'
        when p_is_reset then now() - {{RESET_AFTER}} else now() - {{UNLOCK_AFTER}} end;
begin
    return query
    with stale as (
        select a.tenant_id, a.id, coalesce((a.metadata ->> 'recovery_count')::int, 0) + 1 as recoveries
        from public.activities a
        where a.processing_status = 'processing' and a.locked_at < locked_before
            and (tributary.claims() is null or a.tenant_id = tributary.tenant())
            and (p_workers is null or a.locked_worker = any (p_workers))
            and (p_workers is not null or not exists (
                select from public.crm_processing_nodes n join public.sales s on s.tenant_id = n.tenant_id and s.id = n.sales_id
                where n.tenant_id = a.tenant_id and n.current_activity_id = a.id and s.user_id = a.locked_by
                    and n.last_heartbeat > now() - {{HEARD_WITHIN}}))
        order by a.locked_at limit 1000 for update of a skip locked
    ), changed as (
        update public.activities a
        set processing_status = case when s.recoveries > {{MAX_RECOVERIES}} then 'failed' else 'raw' end,
            metadata = a.metadata || jsonb_build_object('recovery_count', s.recoveries)
                || case when s.recoveries > {{MAX_RECOVERIES}} then jsonb_build_object('error', jsonb_build_object(
                    'timestamp', now(), 'type', {{ABANDONED}}, 'message', 'its agents went silent ' || s.recoveries || ' times')) else '{}' end
        from stale s where a.tenant_id = s.tenant_id and a.id = s.id
        returning a.tenant_id, a.id, a.raw_data, a.processing_status = 'failed' as is_dead
    ), buried as (
        insert into public.activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
        select c.tenant_id, c.id, 'its agents went silent too often', c.raw_data from changed c where c.is_dead
    )
    select c.tenant_id, c.id, c.is_dead from changed c;
end $$;
revoke execute on function tributary.recover_activities(boolean, text[]) from public;
grant execute on function tributary.recover_activities(boolean, text[]) to service_role, authenticated;
