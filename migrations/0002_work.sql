-- Work beside the queues themselves: schedules, parked items, alerts. The queues are pgmq's; store::queue owns what runs on them.

-- No leader: any worker takes a due row, sets the next time and sends the lane's message in one transaction.
create table tributary.schedules (
    name text primary key,
    lane text not null,
    message jsonb not null default '{}',
    every interval not null check (every > interval '0'),
    next_run_at timestamptz not null default now(),
    last_run_at timestamptz,
    last_error text,
    last_error_at timestamptz
);
alter table tributary.schedules enable row level security;
alter table tributary.schedules force row level security;
create policy service on tributary.schedules to tributary_owner, service_role using (true) with check (true);
grant select, insert, update, delete on tributary.schedules to service_role;

-- What waits longer than an hour leaves its queue and waits here: until a time, or (null) until an event sends it again.
-- Retention: leaves when sent again, skipped, or with its tenant.
create table tributary.parked (
    id uuid not null,
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    queue text not null,
    message jsonb not null,
    headers jsonb not null default '{}',
    reason text not null,
    until timestamptz,
    parked_at timestamptz not null default now(),
    primary key (tenant_id, id)
);
create index parked_until_idx on tributary.parked (until) where until is not null;
create index parked_queue_idx on tributary.parked (tenant_id, queue, id);
select tributary.protect('tributary.parked');

-- Something a person should look at: open until its cause is gone. Retention: closed ones for 90 days (task `retention`).
create table tributary.alerts (
    id uuid not null,
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    kind text not null,
    subject text not null,
    what text not null,
    todo text not null,
    since timestamptz not null default now(),
    seen_at timestamptz not null default now(),
    closed_at timestamptz,
    primary key (tenant_id, id)
);
create unique index alerts_open_key on tributary.alerts (tenant_id, kind, subject) where closed_at is null;
select tributary.protect('tributary.alerts');
grant select on tributary.alerts to authenticated;
