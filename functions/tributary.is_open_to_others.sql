-- tributary.is_open_to_others.sql: whether others than its owner may process a raw activity by now, by the rule of domain::activity::open_to_others_at.
-- The policy below lets an agent's key see its person's activities, everyone's, those that wait and are open, and those that this key claimed last.
-- What others have claimed, completed or failed is not open. It holds for rows and recordings; web::realtime::feed has the same rule for sockets.
create or replace function tributary.is_open_to_others(p_tenant uuid, p_sales_id bigint, p_created_at timestamptz) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select exists (
        select from public.sales s
        where s.tenant_id = p_tenant and s.id = p_sales_id and s.allow_remote_processing
            and p_created_at < now() - least(make_interval(mins => s.stale_threshold_minutes), {{STALE_AFTER}}))
$$;
revoke execute on function tributary.is_open_to_others(uuid, bigint, timestamptz) from public;
grant execute on function tributary.is_open_to_others(uuid, bigint, timestamptz) to authenticated, service_role;
drop policy if exists agent on public.activities;
create policy agent on public.activities as restrictive to authenticated using (
    (select tributary.sees_all_activities()) or sales_id is null or sales_id = ((select tributary.claims()) ->> 'sales_id')::bigint
    or claimed_key = ((select tributary.claims()) ->> 'key_id')::uuid
    or (processing_status = 'raw' and tributary.is_open_to_others(tenant_id, sales_id, created_at)));
-- Claims between migration 0015 and this policy. Nobody claims meanwhile: the new policy holds the table's lock.
do $$
begin
    if exists (select from public.activities where processing_status = 'processing' and claimed_key is distinct from locked_key) then
        update public.activities set claimed_key = locked_key
        where processing_status = 'processing' and claimed_key is distinct from locked_key;
    end if;
end $$;
