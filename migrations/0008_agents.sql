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

-- What API roles may write of an activity: its result, its metadata, and the lock, to renew or release it.
grant update (processing_status, processed_data, metadata, locked_by, locked_at) on public.activities to authenticated;
