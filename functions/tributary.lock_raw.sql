-- tributary.lock_raw.sql: locks the oldest p_most raw activities of one owner (null: everyone's) that hold one of these kinds of content. Those that
-- other sessions have locked are passed over.
-- One kind reads a range of `activities_claim_idx`: others cost nothing, however many wait. Several kinds read `activities_raw_idx`, which has the
-- oldest of all kinds first. Ranges and orders are rows of the index's own columns: no other index has them, whatever the statistics.
create or replace function tributary.lock_raw(p_tenant_id uuid, p_owner bigint, p_source_types text[], p_most int) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    if cardinality(p_source_types) = 1 then
        return query
        select a.id from public.activities a
        where a.tenant_id = p_tenant_id and a.processing_status = 'raw'
            and (a.raw_data ->> 'source_type', coalesce(a.sales_id, 0), a.created_at) > (p_source_types[1], coalesce(p_owner, 0), '-infinity')
            and (a.raw_data ->> 'source_type', coalesce(a.sales_id, 0), a.created_at) < (p_source_types[1], coalesce(p_owner, 0), 'infinity')
        order by a.raw_data ->> 'source_type', coalesce(a.sales_id, 0), a.created_at limit p_most for update skip locked;
    elsif p_owner is null then
        return query
        select a.id from public.activities a
        where a.tenant_id = p_tenant_id and a.processing_status = 'raw' and a.sales_id is null and a.raw_data ->> 'source_type' = any (p_source_types)
        order by a.sales_id, a.created_at limit p_most for update skip locked;
    else
        return query
        select a.id from public.activities a
        where a.tenant_id = p_tenant_id and a.processing_status = 'raw' and a.raw_data ->> 'source_type' = any (p_source_types)
            and (a.sales_id, a.created_at) > (p_owner, '-infinity') and (a.sales_id, a.created_at) < (p_owner, 'infinity')
        order by a.sales_id, a.created_at limit p_most for update skip locked;
    end if;
end $$;
revoke execute on function tributary.lock_raw(uuid, bigint, text[], int) from public;
