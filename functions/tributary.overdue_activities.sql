-- tributary.overdue_activities.sql: the oldest p_most raw activities that waited long enough to be handed to an agent of another person. It locks
-- nothing. Their owners allow it, and their waiting time is over. With p_is_stale: all of them older than STALE_AFTER, the agent's own and
-- everyone's too. To the built-in agent the activities of people who let it work for them are its own.
-- It reads a range of `activities_claim_idx` for each kind of content and owner (0: everyone's), so kinds that nobody can process cost nothing however
-- many wait. Ranges and orders are rows of the index's own columns: no other index has them, whatever the statistics. Owners are found by hopping
-- along the same index.
create or replace function tributary.overdue_activities(p_agent public.sales, p_source_types text[], p_is_stale boolean, p_most int)
returns table (id uuid)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return query
    with recursive owners (source_type, owner) as (
        select k.source_type, -1::bigint from unnest(p_source_types) k (source_type)
        union all
        select o.source_type, (
            select coalesce(a.sales_id, 0) from public.activities a
            where a.tenant_id = p_agent.tenant_id and a.processing_status = 'raw'
                and (a.raw_data ->> 'source_type', coalesce(a.sales_id, 0)) > (o.source_type, o.owner)
                and (a.raw_data ->> 'source_type', coalesce(a.sales_id, 0)) <= (o.source_type, 9223372036854775807)
            order by a.raw_data ->> 'source_type', coalesce(a.sales_id, 0), a.created_at limit 1)
        from owners o where o.owner is not null
    )
    select m.id
    from owners o
    left join public.sales s on s.tenant_id = p_agent.tenant_id and s.id = o.owner
    cross join lateral (
        select a.id, a.created_at from public.activities a
        where a.tenant_id = p_agent.tenant_id and a.processing_status = 'raw'
            and (a.raw_data ->> 'source_type', coalesce(a.sales_id, 0), a.created_at) > (o.source_type, o.owner, '-infinity')
            and (a.raw_data ->> 'source_type', coalesce(a.sales_id, 0), a.created_at) < (o.source_type, o.owner,
                now() - case when p_is_stale then {{STALE_AFTER}} else make_interval(mins => s.stale_threshold_minutes) end)
        order by a.raw_data ->> 'source_type', coalesce(a.sales_id, 0), a.created_at limit p_most) m
    where case when o.owner in (0, p_agent.id) or (s.built_in_agent and lower(p_agent.email) = {{BUILT_IN}}) then p_is_stale
        else s.allow_remote_processing end
    order by m.created_at limit p_most;
end $$;
revoke execute on function tributary.overdue_activities(public.sales, text[], boolean, int) from public;
