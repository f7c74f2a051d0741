-- tributary.retry_activities.sql: returns failed activities to processing when their retry is due; those that failed too often become dead letters.
-- Returns both. Activities that a person skipped, and dead letters, stay as they are. An abandoned one is such a dead letter; without its letter it
-- is treated as any other failure, so that it is not lost from sight (domain::activity::after_failure says what follows in words).
create or replace function tributary.retry_activities(p_at timestamptz) returns table (tenant_id uuid, id uuid, is_dead boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at timestamptz := coalesce(p_at, now());
begin
    return query
    with failed as materialized (
        select a.tenant_id, a.id, coalesce((a.metadata ->> 'retry_count')::int, 0) as retries, a.raw_data,
            a.metadata -> 'error' ->> 'type' as kind, a.metadata -> 'error' ->> 'message' as message,
            coalesce((a.metadata ->> 'retry_count')::int, 0) >= {{MAX_RETRIES}} or a.created_at <= at - {{RETRY_WITHIN}} as is_dead
        from public.activities a
        where a.processing_status = 'failed'
            and coalesce(a.metadata -> 'error' ->> 'type', '') <> {{SKIPPED}}
            and coalesce((a.metadata -> 'error' ->> 'timestamp')::timestamptz, a.updated_at) < at - {{RETRY_AFTER}}
            and not exists (select from public.activity_failures f where f.tenant_id = a.tenant_id and f.original_activity_id = a.id)
        order by a.created_at limit 1000 for update of a skip locked
    ), again as (
        update public.activities a
        set processing_status = 'raw', metadata = a.metadata || jsonb_build_object('retry_count', f.retries + 1)
        from failed f
        where a.tenant_id = f.tenant_id and a.id = f.id and not f.is_dead
    ), buried as (
        insert into public.activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
        select f.tenant_id, f.id, left(coalesce(f.kind || ': ', '') || coalesce(f.message, 'it failed too often'), 2000), f.raw_data
        from failed f where f.is_dead
    )
    select f.tenant_id, f.id, f.is_dead from failed f;
end $$;
revoke execute on function tributary.retry_activities(timestamptz) from public;
grant execute on function tributary.retry_activities(timestamptz) to service_role;
