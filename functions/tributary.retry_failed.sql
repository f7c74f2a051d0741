-- tributary.retry_failed.sql: has failed activities processed again an hour after their error, at most three times within a day of arrival.
-- Those that failed too often become dead letters; what a person skipped stays as it is. Returns how many are processed again.
create or replace function tributary.retry_failed(p_at timestamptz default null) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    at timestamptz := coalesce(p_at, now());
    retried integer;
begin
    with failed as materialized (
        select a.tenant_id, a.id, coalesce((a.metadata ->> 'retry_count')::int, 0) as retries, a.created_at,
            a.metadata -> 'error' ->> 'type' as kind, a.metadata -> 'error' ->> 'message' as message, a.raw_data
        from public.activities a
        where a.processing_status = 'failed'
            and coalesce(a.metadata -> 'error' ->> 'type', '') not in ('Skipped', 'Abandoned')
            and coalesce((a.metadata -> 'error' ->> 'timestamp')::timestamptz, a.updated_at) < at - interval '1 hour'
            and not exists (select from public.activity_failures f where f.tenant_id = a.tenant_id and f.original_activity_id = a.id)
        order by a.created_at limit 1000 for update of a skip locked
    ), again as (
        update public.activities a
        set processing_status = 'raw', metadata = a.metadata || jsonb_build_object('retry_count', f.retries + 1)
        from failed f
        where a.tenant_id = f.tenant_id and a.id = f.id and f.retries < 3 and f.created_at > at - interval '24 hours'
        returning a.id
    ), buried as (
        insert into public.activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
        select f.tenant_id, f.id, left(coalesce(f.kind || ': ', '') || coalesce(f.message, 'it failed too often'), 2000), f.raw_data
        from failed f where f.retries >= 3 or f.created_at <= at - interval '24 hours'
    )
    select count(*) into retried from again;
    return retried;
end $$;
revoke execute on function tributary.retry_failed(timestamptz) from public;
grant execute on function tributary.retry_failed(timestamptz) to service_role;
