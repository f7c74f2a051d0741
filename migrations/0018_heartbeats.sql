-- A heartbeat says itself whether it changed what pages show of its device.

-- The heartbeat at which a device's status, its activity or whether it is heard changed last (trigger `node_beats`). If it is the last heartbeat, pages
-- have something new to show.
alter table public.crm_processing_nodes add column shown_at timestamptz not null default now();
