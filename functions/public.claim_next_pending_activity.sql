-- public.claim_next_pending_activity.sql: claims up to p_limit raw activities for one agent. Two agents never get the same one.
-- First the person's own, then everyone's, then others' whose owner allows it and whose work waited longer than that owner wants; the oldest first
-- in each.
-- `p_source_types` narrows the kinds of content that the person's agents are handed: an agent that cannot hear leaves calls to others.
-- Everyone's are ordered by `sales_id, created_at`, which only the index of raw activities has: by another index all that is done would be read first.
-- The form without kinds of content: beside this one a call with two arguments would be ambiguous.
drop function if exists public.claim_next_pending_activity(bigint, int);
create or replace function public.claim_next_pending_activity(p_agent_sales_id bigint default null, p_limit int default 1, p_source_types text[] default null)
returns table (id uuid, raw_data jsonb, type text, is_global boolean, lock_epoch int)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    agent public.sales := tributary.agent(p_agent_sales_id);
    most int := least(greatest(coalesce(p_limit, 1), 1), 100);
    key uuid := (tributary.claims() ->> 'key_id')::uuid;
    source_types text[] := (select array_agg(t) from unnest(agent.processes) t where p_source_types is null or t = any (p_source_types));
begin
    return query
    with own as (
        select a.id, 1 as class, a.created_at from public.activities a
        where a.tenant_id = agent.tenant_id and a.processing_status = 'raw' and a.sales_id = agent.id
            and a.raw_data ->> 'source_type' = any (source_types)
        order by a.created_at limit most for update skip locked
    ), unowned as (
        select a.id, 2 as class, a.created_at from public.activities a
        where a.tenant_id = agent.tenant_id and a.processing_status = 'raw' and a.sales_id is null
            and a.raw_data ->> 'source_type' = any (source_types)
        order by a.sales_id, a.created_at limit most - (select count(*) from own) for update skip locked
    ), others as (
        select a.id, 3 as class, a.created_at from public.activities a
        join public.sales owner on owner.tenant_id = a.tenant_id and owner.id = a.sales_id
        where a.tenant_id = agent.tenant_id and a.processing_status = 'raw' and a.sales_id <> agent.id
            and owner.allow_remote_processing and a.created_at < now() - make_interval(mins => owner.stale_threshold_minutes)
            and a.raw_data ->> 'source_type' = any (source_types)
        order by a.created_at limit most - (select count(*) from own) - (select count(*) from unowned) for update of a skip locked
    ), picked as (
        select * from own union all select * from unowned union all select * from others
    ), claimed as (
        update public.activities a
        set processing_status = 'processing', locked_by = agent.user_id, locked_at = now(), lock_epoch = a.lock_epoch + 1,
            locked_key = key
        from picked where a.tenant_id = agent.tenant_id and a.id = picked.id
        returning a.id, a.raw_data, a.type, a.sales_id is null as is_global, a.lock_epoch, picked.class, picked.created_at
    )
    select c.id, c.raw_data, c.type, c.is_global, c.lock_epoch from claimed c order by c.class, c.created_at;
end $$;
revoke execute on function public.claim_next_pending_activity(bigint, int, text[]) from public;
grant execute on function public.claim_next_pending_activity(bigint, int, text[]) to service_role, authenticated;
