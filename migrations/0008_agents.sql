-- Agents on people's devices: who is online, whose hands an activity is in, and what may be written by whom.

-- One device of a person's. Heartbeats are updates of its row; `enabled` and `concurrency` are set on the Nodes page and read by the agent with
-- each heartbeat. Retention: kept; a device is one row.
create table public.crm_processing_nodes (
    id uuid not null default gen_random_uuid(),
    tenant_id uuid not null default tributary.tenant(),
    sales_id bigint not null,
    app_name text not null default 'atomic-crm' check (length(app_name) between 1 and 100),
    device_name text not null check (length(device_name) between 1 and 200),
    status text not null default 'ready' check (status in ('ready', 'processing', 'offline')),
    current_activity_id uuid,
    processed_count int not null default 0 check (processed_count >= 0),
    last_heartbeat timestamptz not null default now(),
    enabled boolean not null default true,
    concurrency int not null default 1 check (concurrency between 1 and 64),
    created_at timestamptz not null default now(),
    primary key (tenant_id, id),
    constraint crm_processing_nodes_device unique (sales_id, app_name, device_name),
    foreign key (tenant_id, sales_id) references public.sales (tenant_id, id) on delete cascade
);
create index crm_processing_nodes_activity_idx on public.crm_processing_nodes (tenant_id, current_activity_id) where current_activity_id is not null;
select tributary.protect('public.crm_processing_nodes');
grant select on public.crm_processing_nodes to authenticated;
grant insert (sales_id, app_name, device_name, status, current_activity_id, processed_count) on public.crm_processing_nodes to authenticated;
grant update (status, current_activity_id, processed_count, last_heartbeat) on public.crm_processing_nodes to authenticated;

-- A caller beats for its own person alone, and by our clock. What it works on stays in its hands.
create function tributary.node_beats() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    claims jsonb := tributary.claims();
begin
    if current_user = 'authenticated' and not coalesce(claims -> 'scopes' ? 'service', false)
        and new.sales_id is distinct from (claims ->> 'sales_id')::bigint
    then
        raise exception 'this key beats for its own person alone' using errcode = 'insufficient_privilege';
    end if;
    new.last_heartbeat := clock_timestamp();
    return new;
end $$;
create trigger node_beats before insert or update on public.crm_processing_nodes for each row execute function tributary.node_beats();

create function tributary.node_holds_on() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update public.activities a set locked_at = now()
    from public.sales s
    where s.tenant_id = new.tenant_id and s.id = new.sales_id and a.tenant_id = new.tenant_id and a.id = new.current_activity_id
        and a.processing_status = 'processing' and a.locked_by = s.user_id;
    return null;
end $$;
revoke execute on function tributary.node_holds_on() from public;
create trigger node_holds_on after insert or update on public.crm_processing_nodes
    for each row when (new.current_activity_id is not null and new.status = 'processing') execute function tributary.node_holds_on();

-- What API roles may write of an activity: its result, its metadata, and the lock, to renew or release it.
grant update (processing_status, processed_data, metadata, locked_by, locked_at) on public.activities to authenticated;

-- The state machine, for whoever writes. Claims are made by the claim functions alone; a result is taken from the key that claimed. A late one
-- overwrites nothing.
create or replace function tributary.activity_changes() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    claims jsonb;
begin
    if current_user = 'authenticated' then
        claims := tributary.claims();
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
            new.metadata := old.metadata - 'error';
            old.metadata := old.metadata - 'retry_count' - 'recovery_count';
        else
            raise exception 'lock lost: activity % is %, and not in this agent''s hands', old.id, old.processing_status using errcode = 'PT409';
        end if;
        -- Ours to count and to tell: what an agent writes there is not taken.
        new.metadata := (case when jsonb_typeof(new.metadata) = 'object' then new.metadata else old.metadata end)
            - 'recovery_count' - 'retry_count' - 'from_key' - 'to_key'
            || jsonb_strip_nulls(jsonb_build_object('recovery_count', old.metadata -> 'recovery_count', 'retry_count', old.metadata -> 'retry_count',
                'from_key', old.metadata -> 'from_key', 'to_key', old.metadata -> 'to_key'));
        if new.processing_status = 'failed' then
            new.metadata := new.metadata || jsonb_build_object('error',
                (case when jsonb_typeof(new.metadata -> 'error') = 'object' then new.metadata -> 'error'
                    else jsonb_build_object('type', 'Error', 'message', coalesce(new.metadata ->> 'error', 'it failed')) end)
                || jsonb_build_object('timestamp', now(), 'retry_count', coalesce(old.metadata -> 'retry_count', '0')));
        end if;
    end if;
    if new.processing_status <> 'processing' then
        new.locked_by := null;
        new.locked_at := null;
        new.locked_key := null;
    end if;
    new.updated_at := clock_timestamp();
    return new;
end $$;

-- As before, but a lock stays with a device that was heard within two minutes: a call takes longer than five to transcribe.
create or replace function tributary.recover_locks(p_age interval) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    recovered integer;
begin
    with stale as (
        select a.tenant_id, a.id, coalesce((a.metadata ->> 'recovery_count')::int, 0) + 1 as recoveries
        from public.activities a
        where a.processing_status = 'processing' and a.locked_at < now() - p_age
            and (tributary.claims() is null or a.tenant_id = tributary.tenant())
            and not exists (
                select from public.crm_processing_nodes n join public.sales s on s.tenant_id = n.tenant_id and s.id = n.sales_id
                where n.tenant_id = a.tenant_id and n.current_activity_id = a.id and s.user_id = a.locked_by
                    and n.last_heartbeat > now() - interval '2 minutes')
        order by a.locked_at limit 1000 for update of a skip locked
    ), changed as (
        update public.activities a
        set processing_status = case when s.recoveries > 3 then 'failed' else 'raw' end,
            metadata = a.metadata || jsonb_build_object('recovery_count', s.recoveries)
                || case when s.recoveries > 3 then jsonb_build_object('error', jsonb_build_object(
                    'timestamp', now(), 'type', 'Abandoned', 'message', 'its agents went silent ' || s.recoveries || ' times')) else '{}' end
        from stale s where a.tenant_id = s.tenant_id and a.id = s.id
        returning a.tenant_id, a.id, a.raw_data, a.processing_status
    ), buried as (
        insert into public.activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
        select c.tenant_id, c.id, 'its agents went silent too often', c.raw_data from changed c where c.processing_status = 'failed'
    )
    select count(*) into recovered from changed;
    return recovered;
end $$;

-- What failed is tried again an hour after its error, at most three times within a day of its coming; then it is a dead letter. What a person
-- skipped stays as it is. Returns how many go round again.
create function tributary.retry_failed(p_at timestamptz default null) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    at timestamptz := coalesce(p_at, now());
    retried integer;
begin
    with failed as materialized (
        select a.tenant_id, a.id, coalesce((a.metadata ->> 'retry_count')::int, 0) as retries, a.created_at,
            a.metadata -> 'error' ->> 'type' as kind, a.metadata -> 'error' ->> 'message' as message, a.raw_data
        from public.activities a
        where a.processing_status = 'failed'
            and coalesce(a.metadata -> 'error' ->> 'type', '') not in ('Skipped', 'Abandoned')
            and coalesce((a.metadata -> 'error' ->> 'timestamp')::timestamptz, a.updated_at) < at - interval '1 hour'
            and not exists (select from public.activity_failures f where f.tenant_id = a.tenant_id and f.original_activity_id = a.id)
        order by a.created_at limit 1000 for update of a skip locked
    ), again as (
        update public.activities a
        set processing_status = 'raw', metadata = a.metadata || jsonb_build_object('retry_count', f.retries + 1)
        from failed f
        where a.tenant_id = f.tenant_id and a.id = f.id and f.retries < 3 and f.created_at > at - interval '24 hours'
        returning a.id
    ), buried as (
        insert into public.activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
        select f.tenant_id, f.id, left(coalesce(f.kind || ': ', '') || coalesce(f.message, 'it failed too often'), 2000), f.raw_data
        from failed f where f.retries >= 3 or f.created_at <= at - interval '24 hours'
    )
    select count(*) into retried from again;
    return retried;
end $$;
revoke execute on function tributary.retry_failed(timestamptz) from public;
grant execute on function tributary.retry_failed(timestamptz) to service_role;
