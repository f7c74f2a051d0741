-- tributary.claim_activities.sql: claims up to p_limit raw activities for an agent. Two agents never get the same one.
-- First the person's own, then everyone's, then others' that are overdue; with p_is_stale all that are stale. The oldest first in each.
-- To the built-in agent the activities of people who let it work for them are its own. Whose activity waits longest is served first.
-- It returns fewer than p_limit only if there are no more: of the overdue ones it looks at a few more than it wants, and at more again while other
-- sessions hold those.
create or replace function tributary.claim_activities(p_agent public.sales, p_limit int, p_source_types text[], p_is_stale boolean)
returns table (id uuid, raw_data jsonb, type text, is_global boolean, lock_epoch int)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    wanted int := least(greatest(coalesce(p_limit, 1), 1), 100);
    looked_at int := wanted + 8;
    key uuid := (tributary.claims() ->> 'key_id')::uuid;
    source_types text[] := (select array_agg(distinct t) from unnest(p_agent.processes) t where p_source_types is null or t = any (p_source_types));
    own bigint[] := array[p_agent.id];
    owner bigint;
    overdue uuid[];
    picked uuid[] := '{}';
begin
    -- Without p_source_types these are all that the person takes, so null means none at all, and nothing has to be read.
    if source_types is null then
        return;
    end if;
    if not p_is_stale then
        if lower(p_agent.email) = {{BUILT_IN}} then
            own := own || array(
                select s.id from public.sales s cross join lateral (
                    select a.created_at from public.activities a
                    where a.tenant_id = s.tenant_id and a.processing_status = 'raw'
                        and (a.sales_id, a.created_at) > (s.id, '-infinity') and (a.sales_id, a.created_at) < (s.id, 'infinity')
                    order by a.sales_id, a.created_at limit 1) oldest
                where s.tenant_id = p_agent.tenant_id and s.built_in_agent
                order by oldest.created_at);
        end if;
        foreach owner in array array_append(own, null) loop
            picked := picked || array(select tributary.lock_raw(p_agent.tenant_id, owner, source_types, wanted - cardinality(picked)));
        end loop;
    end if;
    while cardinality(picked) < wanted loop
        overdue := array(select o.id from tributary.overdue_activities(p_agent, source_types, p_is_stale, looked_at) o);
        picked := picked || array(
            select a.id from public.activities a
            where a.id = any (overdue) and a.id <> all (picked) and a.processing_status = 'raw'
            order by array_position(overdue, a.id) limit wanted - cardinality(picked) for update skip locked);
        exit when cardinality(overdue) < looked_at;
        looked_at := looked_at * 8;
    end loop;
    return query
    -- By ids alone, which are this tenant's: rows are found by that key whatever the statistics.
    with claimed as (
        update public.activities a
        set processing_status = 'processing', locked_by = p_agent.user_id, locked_at = now(), lock_epoch = a.lock_epoch + 1, locked_key = key
        where a.id = any (picked)
        returning a.id, a.raw_data, a.type, a.sales_id is null as is_global, a.lock_epoch
    )
    select c.id, c.raw_data, c.type, c.is_global, c.lock_epoch from claimed c order by array_position(picked, c.id);
end $$;
revoke execute on function tributary.claim_activities(public.sales, int, text[], boolean) from public;
