-- tributary.reserve.sql: reserves p_micros as reservation p_id, if the month's spending, other reservations and this one stay within p_cap.
-- Returns `reserved`; `busy`, if other reservations use up the rest; or `spent`.
create or replace function tributary.reserve(p_tenant uuid, p_id uuid, p_micros bigint, p_cap bigint, p_now timestamptz) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    this_month date := date_trunc('month', p_now at time zone 'utc');
    spent bigint;
    set_aside bigint;
begin
    insert into tributary.budgets as b (tenant_id, month) values (p_tenant, this_month)
        on conflict (tenant_id, month) do update set month = b.month; -- locks the row: one caller at a time from here on
    delete from tributary.reservations where tenant_id = p_tenant and made_at < p_now - interval '10 minutes';
    -- In this order, a reservation that is settled between the two statements is counted twice; in the other it would be left out.
    select coalesce(sum(micros), 0) into set_aside from tributary.reservations where tenant_id = p_tenant;
    select coalesce(sum(cost_micros), 0) into spent from public.usage where tenant_id = p_tenant and month = this_month;
    if spent + set_aside + p_micros <= p_cap then
        insert into tributary.reservations (id, tenant_id, micros, made_at) values (p_id, p_tenant, p_micros, p_now);
        return 'reserved';
    end if;
    if spent + p_micros <= p_cap then
        return 'busy';
    end if;
    update tributary.budgets set refused_under_micros = p_cap where tenant_id = p_tenant and month = this_month;
    return 'spent';
end $$;
revoke execute on function tributary.reserve(uuid, uuid, bigint, bigint, timestamptz) from public;
grant execute on function tributary.reserve(uuid, uuid, bigint, bigint, timestamptz) to service_role;
