-- tributary.recover_locks.sql: gives back the locks that nobody renewed for p_age; returns how many.
-- Every recovery counts, so that poison ends: after the third it is a dead letter. A lock stays with a device that was heard within two minutes: a
-- call takes longer than five to transcribe.
create or replace function tributary.recover_locks(p_age interval) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    recovered integer;
begin
    with stale as (
        select a.tenant_id, a.id, coalesce((a.metadata ->> 'recovery_count')::int, 0) + 1 as recoveries
        from public.activities a
        where a.processing_status = 'processing' and a.locked_at < now() - p_age
            and (tributary.claims() is null or a.tenant_id = tributary.tenant())
            and not exists (
                select from public.crm_processing_nodes n join public.sales s on s.tenant_id = n.tenant_id and s.id = n.sales_id
                where n.tenant_id = a.tenant_id and n.current_activity_id = a.id and s.user_id = a.locked_by
                    and n.last_heartbeat > now() - interval '2 minutes')
        order by a.locked_at limit 1000 for update of a skip locked
    ), changed as (
        update public.activities a
        set processing_status = case when s.recoveries > 3 then 'failed' else 'raw' end,
            metadata = a.metadata || jsonb_build_object('recovery_count', s.recoveries)
                || case when s.recoveries > 3 then jsonb_build_object('error', jsonb_build_object(
                    'timestamp', now(), 'type', 'Abandoned', 'message', 'its agents went silent ' || s.recoveries || ' times')) else '{}' end
        from stale s where a.tenant_id = s.tenant_id and a.id = s.id
        returning a.tenant_id, a.id, a.raw_data, a.processing_status
    ), buried as (
        insert into public.activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
        select c.tenant_id, c.id, 'its agents went silent too often', c.raw_data from changed c where c.processing_status = 'failed'
    )
    select count(*) into recovered from changed;
    return recovered;
end $$;
revoke execute on function tributary.recover_locks(interval) from public;
