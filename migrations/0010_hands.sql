-- What an agent says of an activity adds to what is known of it, and whose device it is, its key says.

-- When it was claimed last: a lock's own time moves with every heartbeat.
alter table public.activities add column claimed_at timestamptz;

create or replace function tributary.node_beats() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    claims jsonb := tributary.claims();
begin
    if current_user = 'authenticated' then
        new.sales_id := coalesce(new.sales_id, (claims ->> 'sales_id')::bigint);
        if not coalesce(claims -> 'scopes' ? 'service', false) and new.sales_id is distinct from (claims ->> 'sales_id')::bigint then
            raise exception 'this key beats for its own person alone' using errcode = 'insufficient_privilege';
        end if;
    end if;
    -- What a person sets on a page is no sign of the device's life.
    if tg_op = 'UPDATE' and (new.enabled, new.concurrency) is distinct from (old.enabled, old.concurrency) then
        new.last_heartbeat := old.last_heartbeat;
    else
        new.last_heartbeat := clock_timestamp();
    end if;
    return new;
end $$;

drop trigger node_holds_on on public.crm_processing_nodes;
create trigger node_holds_on after insert on public.crm_processing_nodes
    for each row when (new.current_activity_id is not null and new.status = 'processing') execute function tributary.node_holds_on();
create trigger node_holds_on_still after update on public.crm_processing_nodes
    for each row when (new.current_activity_id is not null and new.status = 'processing' and new.last_heartbeat is distinct from old.last_heartbeat)
    execute function tributary.node_holds_on();

-- What an agent may say it made of an activity: people and search read it.
create function tributary.is_result(p_data jsonb) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_typeof(p_data) = 'object'
        and coalesce(jsonb_typeof(p_data -> 'transcript'), 'null') in ('string', 'null')
        and coalesce(jsonb_typeof(p_data -> 'summary'), 'null') in ('string', 'null')
        and coalesce(jsonb_typeof(p_data -> 'facts'), 'null') in ('array', 'null')
        and pg_column_size(p_data) <= 4194304, p_data is null)
$$;
revoke execute on function tributary.is_result(jsonb) from public;
grant execute on function tributary.is_result(jsonb) to authenticated, service_role;

-- As before, but metadata is added to: an agent that writes nothing but its error must not wipe out whose message it was.
create or replace function tributary.activity_changes() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    claims jsonb;
begin
    if current_user = 'authenticated' then
        claims := tributary.claims();
        if new.processed_data is distinct from old.processed_data and not tributary.is_result(new.processed_data) then
            raise exception 'a result is {transcript?, summary?, facts?[]}: texts, a list of facts, and no more than 4 MB' using errcode = 'invalid_parameter_value';
        end if;
        if old.processing_status = 'processing' then
            if old.locked_key is distinct from (claims ->> 'key_id')::uuid then
                raise exception 'lock lost: another agent has activity % now', old.id using errcode = 'PT409';
            end if;
            -- A lock is renewed by our clock, and released whole.
            if new.processing_status = 'processing' then
                if new.locked_by is null or new.locked_at is null then
                    new.processing_status := 'raw';
                else
                    new.locked_by := old.locked_by;
                    new.locked_at := now();
                end if;
            end if;
        elsif old.processing_status = 'failed' and new.processing_status = 'raw' then
            if not claims -> 'scopes' ?| array['write', 'service'] then
                raise exception 'this key may not retry' using errcode = 'insufficient_privilege';
            end if;
            new.metadata := '{}';
            old.metadata := old.metadata - 'error' - 'retry_count' - 'recovery_count';
        else
            raise exception 'lock lost: activity % is %, and not in this agent''s hands', old.id, old.processing_status using errcode = 'PT409';
        end if;
        -- Ours to count and to tell: what an agent writes there is not taken.
        new.metadata := old.metadata
            || (case when jsonb_typeof(new.metadata) = 'object' then new.metadata else '{}' end) - 'recovery_count' - 'retry_count' - 'from_key' - 'to_key';
        if new.processing_status = 'failed' then
            new.metadata := new.metadata || jsonb_build_object('error',
                (case when jsonb_typeof(new.metadata -> 'error') = 'object' then new.metadata -> 'error'
                    else jsonb_build_object('type', 'Error', 'message', coalesce(new.metadata ->> 'error', 'it failed')) end)
                || jsonb_build_object('timestamp', now(), 'retry_count', coalesce(old.metadata -> 'retry_count', '0')));
        end if;
    end if;
    if new.processing_status = 'processing' and old.processing_status <> 'processing' then
        new.claimed_at := now();
    end if;
    if new.processing_status <> 'processing' then
        new.locked_by := null;
        new.locked_at := null;
        new.locked_key := null;
    end if;
    new.updated_at := clock_timestamp();
    return new;
end $$;

-- As before, but an agent may say which kinds of content it can process (`p_source_types`; beside what its person's agents are handed): one that
-- cannot hear leaves calls to others. The key is looked at once, not for every row; and what is everyone's is asked for in the order that
-- only the index of raw activities has: by another one all that is done already would be read before it.
drop function public.claim_next_pending_activity(bigint, int);
drop function public.claim_stale_activity(bigint, int);
create function public.claim_next_pending_activity(p_agent_sales_id bigint default null, p_limit int default 1, p_source_types text[] default null)
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

-- Anything raw for five minutes: mine, global, or others' where the owner allows it; the oldest first.
create function public.claim_stale_activity(p_agent_sales_id bigint default null, p_limit int default 1, p_source_types text[] default null)
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
        where a.tenant_id = agent.tenant_id and a.processing_status = 'raw' and a.created_at < now() - interval '5 minutes'
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

do $$
declare
    contract text;
begin
    foreach contract in array array['claim_next_pending_activity(bigint, int, text[])', 'claim_stale_activity(bigint, int, text[])'] loop
        execute format('revoke execute on function public.%s from public', contract);
        execute format('grant execute on function public.%s to service_role, authenticated', contract);
    end loop;
end $$;

-- Whoever has an activity processed again, its dead letter goes: what fails again is tried and buried again.
create function tributary.activity_retried() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from public.activity_failures f where f.tenant_id = new.tenant_id and f.original_activity_id = new.id;
    return null;
end $$;
revoke execute on function tributary.activity_retried() from public;
create trigger activity_retried after update on public.activities
    for each row when (old.processing_status = 'failed' and new.processing_status = 'raw') execute function tributary.activity_retried();

-- Agents go by the newest statistics: a thousand activities come and are done between two looks at a large table.
alter table public.activities set (autovacuum_analyze_scale_factor = 0.01, autovacuum_vacuum_scale_factor = 0.02);
