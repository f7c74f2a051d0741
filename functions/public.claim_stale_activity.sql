-- public.claim_stale_activity.sql: claims up to p_limit raw activities older than STALE_AFTER (domain::activity), the oldest first.
-- The person's own, everyone's, and others' where the owner allows it.
-- `p_source_types` narrows the kinds of content that the person's agents are handed: an agent that cannot hear leaves calls to others.
-- The form without kinds of content: beside this one a call with two arguments would be ambiguous.
drop function if exists public.claim_stale_activity(bigint, int);
create or replace function public.claim_stale_activity(p_agent_sales_id bigint default null, p_limit int default 1, p_source_types text[] default null)
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
    with picked as (
        select a.id, a.created_at from public.activities a
        left join public.sales owner on owner.tenant_id = a.tenant_id and owner.id = a.sales_id
        where a.tenant_id = agent.tenant_id and a.processing_status = 'raw' and a.created_at < now() - {{STALE_AFTER}}
            and (a.sales_id is null or a.sales_id = agent.id or owner.allow_remote_processing)
            and a.raw_data ->> 'source_type' = any (source_types)
        order by a.created_at limit most for update of a skip locked
    ), claimed as (
        update public.activities a
        set processing_status = 'processing', locked_by = agent.user_id, locked_at = now(), lock_epoch = a.lock_epoch + 1,
            locked_key = key
        from picked where a.tenant_id = agent.tenant_id and a.id = picked.id
        returning a.id, a.raw_data, a.type, a.sales_id is null as is_global, a.lock_epoch, picked.created_at
    )
    select c.id, c.raw_data, c.type, c.is_global, c.lock_epoch from claimed c order by c.created_at;
end $$;
revoke execute on function public.claim_stale_activity(bigint, int, text[]) from public;
grant execute on function public.claim_stale_activity(bigint, int, text[]) to service_role, authenticated;
