-- tributary.recover_activities.sql: gives back the locks that nobody renewed in time; returns the activities it changed.
-- Every recovery counts, so that poison ends: after {{MAX_RECOVERIES}} of them the activity is a dead letter. A lock stays with a device that was heard
-- lately: a call takes longer to transcribe than a lock lasts.
-- The form of schema 11, which only counted.
drop function if exists tributary.recover_locks(interval);
create or replace function tributary.recover_activities(p_is_reset boolean) returns table (tenant_id uuid, id uuid, is_dead boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    locked_before timestamptz := now() - case when p_is_reset then {{RESET_AFTER}} else {{UNLOCK_AFTER}} end;
begin
    return query
    with stale as (
        select a.tenant_id, a.id, coalesce((a.metadata ->> 'recovery_count')::int, 0) + 1 as recoveries
        from public.activities a
        where a.processing_status = 'processing' and a.locked_at < locked_before
            and (tributary.claims() is null or a.tenant_id = tributary.tenant())
            and not exists (
                select from public.crm_processing_nodes n join public.sales s on s.tenant_id = n.tenant_id and s.id = n.sales_id
                where n.tenant_id = a.tenant_id and n.current_activity_id = a.id and s.user_id = a.locked_by
                    and n.last_heartbeat > now() - {{HEARD_WITHIN}})
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
revoke execute on function tributary.recover_activities(boolean) from public;
grant execute on function tributary.recover_activities(boolean) to service_role, authenticated;
