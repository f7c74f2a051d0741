-- tributary.agent.sql: returns the person for whom a caller claims.
-- A caller with claims claims for its own person (a service key may name anyone of its tenant); a caller without claims names the person.
create or replace function tributary.agent(p_sales_id bigint) returns public.sales
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    claims jsonb := tributary.claims();
    own bigint := (claims ->> 'sales_id')::bigint;
    is_service boolean := coalesce(claims -> 'scopes' ? 'service', false);
    found_agent public.sales;
begin
    if claims is not null and not is_service and (own is null or p_sales_id <> own) then
        raise exception 'this key may claim for its own person alone' using errcode = 'insufficient_privilege';
    end if;
    select * into found_agent from public.sales s
    where s.id = coalesce(p_sales_id, own) and (claims is null or s.tenant_id = tributary.tenant());
    if not found then
        raise exception 'no such person to claim for' using errcode = 'insufficient_privilege';
    end if;
    return found_agent;
end $$;
revoke execute on function tributary.agent(bigint) from public;
