-- Worker tracking in schema ai, in the layout of the open pgai vectorizer. Where `pgai install` made these objects they
-- are used as they are; nothing here replaces them.

create schema if not exists ai;

-- One row per process, alive or dead. Retention: rows silent for 7 days (task `retention`; off where pgai made the table).
create table if not exists ai.vectorizer_worker_process (
    id uuid not null primary key default gen_random_uuid(),
    version text not null,
    started timestamptz not null default now(),
    expected_heartbeat_interval interval not null,
    last_heartbeat timestamptz not null default now(),
    heartbeat_count bigint not null default 0,
    error_count bigint not null default 0,
    success_count bigint not null default 0,
    last_error_at timestamptz,
    last_error_message text
);
do $$
begin
    -- `create index if not exists` looks at the name alone; pgai's own index may have another.
    if not exists (
        select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = 'ai.vectorizer_worker_process'::regclass and a.attname = 'last_heartbeat'
    ) then
        create index on ai.vectorizer_worker_process (last_heartbeat);
    end if;
end $$;

-- One row per vectorizer, shared by all workers. No key to the process table: processes are removed independently, and
-- this write must never fail for that. The key to ai.vectorizer comes with the vectorizers.
create table if not exists ai.vectorizer_worker_progress (
    vectorizer_id int4 not null primary key,
    success_count bigint not null default 0,
    error_count bigint not null default 0,
    last_success_at timestamptz,
    last_success_process_id uuid,
    last_error_at timestamptz,
    last_error_message text,
    last_error_process_id uuid,
    updated_at timestamptz not null default now()
);

-- Wall clock (clock_timestamp), not transaction time: a heartbeat from a long transaction must not look old. Looked up by name
-- alone: pgai's take int where ours take bigint, and a second function of the name would make calls ambiguous.
do $outer$
begin
    if not exists (select from pg_proc where pronamespace = 'ai'::regnamespace and proname = '_worker_start') then
        create function ai._worker_start(version text, expected_heartbeat_interval interval) returns uuid
        language sql volatile security invoker
        set search_path = pg_catalog, pg_temp
        as $$
            insert into ai.vectorizer_worker_process (version, started, expected_heartbeat_interval, last_heartbeat)
            values (version, clock_timestamp(), expected_heartbeat_interval, clock_timestamp())
            returning id
        $$;
    end if;

    if not exists (select from pg_proc where pronamespace = 'ai'::regnamespace and proname = '_worker_heartbeat') then
        create function ai._worker_heartbeat(
            worker_id uuid,
            num_successes_since_last_heartbeat bigint,
            num_errors_since_last_heartbeat bigint,
            error_message text
        ) returns void
        language sql volatile security invoker
        set search_path = pg_catalog, pg_temp
        as $$
            update ai.vectorizer_worker_process set
                last_heartbeat = clock_timestamp(),
                heartbeat_count = heartbeat_count + 1,
                success_count = success_count + num_successes_since_last_heartbeat,
                error_count = error_count + num_errors_since_last_heartbeat,
                last_error_at = case when error_message is null then last_error_at else clock_timestamp() end,
                last_error_message = coalesce(error_message, last_error_message)
            where id = worker_id
        $$;
    end if;

    if not exists (select from pg_proc where pronamespace = 'ai'::regnamespace and proname = '_worker_progress') then
        create function ai._worker_progress(
            worker_id uuid,
            worker_vectorizer_id int4,
            num_successes bigint,
            error_message text
        ) returns void
        language sql volatile security invoker
        set search_path = pg_catalog, pg_temp
        as $$
            insert into ai.vectorizer_worker_progress as p (
                vectorizer_id, success_count, error_count,
                last_success_at, last_success_process_id, last_error_at, last_error_message, last_error_process_id, updated_at
            ) values (
                worker_vectorizer_id, num_successes, case when error_message is null then 0 else 1 end,
                case when error_message is null then clock_timestamp() end,
                case when error_message is null then worker_id end,
                case when error_message is not null then clock_timestamp() end,
                error_message,
                case when error_message is not null then worker_id end,
                clock_timestamp()
            )
            on conflict (vectorizer_id) do update set
                success_count = p.success_count + excluded.success_count,
                error_count = p.error_count + excluded.error_count,
                last_success_at = coalesce(excluded.last_success_at, p.last_success_at),
                last_success_process_id = coalesce(excluded.last_success_process_id, p.last_success_process_id),
                last_error_at = coalesce(excluded.last_error_at, p.last_error_at),
                last_error_message = coalesce(excluded.last_error_message, p.last_error_message),
                last_error_process_id = coalesce(excluded.last_error_process_id, p.last_error_process_id),
                updated_at = excluded.updated_at
        $$;
    end if;
end $outer$;

-- Ours, beside pgai's: where a worker runs, and per lane what it holds and when it last got anywhere. `stalled` needs these.
-- Retention: with the process row (task `retention`).
create table tributary.workers (
    process_id uuid primary key,
    host text not null,
    pid int not null,
    role text not null,
    stopped_at timestamptz
);
create table tributary.worker_lanes (
    process_id uuid not null references tributary.workers (process_id) on delete cascade,
    lane text not null,
    lease_secs int not null,
    holding int not null default 0,
    progressed_at timestamptz not null,
    claimed_at timestamptz not null,
    done bigint not null default 0,
    failed bigint not null default 0,
    waited bigint not null default 0,
    stale bigint not null default 0,
    primary key (process_id, lane)
);
do $$
declare
    tbl text;
begin
    foreach tbl in array array['tributary.workers', 'tributary.worker_lanes'] loop
        execute format('alter table %s enable row level security', tbl);
        execute format('alter table %s force row level security', tbl);
        execute format('create policy service on %s to tributary_owner, service_role using (true) with check (true)', tbl);
        execute format('grant select, insert, update, delete on %s to service_role', tbl);
    end loop;
end $$;
