-- migrations_table.sql: the table that records which migrations have run, and their hashes.
create schema if not exists tributary;
create table if not exists tributary.migrations (
    version int primary key,
    name text not null,
    sha256 bytea not null,
    applied_at timestamptz not null default now()
);
alter table tributary.migrations enable row level security;
alter table tributary.migrations force row level security;
drop policy if exists service on tributary.migrations;
create policy service on tributary.migrations to tributary_owner, service_role using (true) with check (true);
grant usage on schema tributary to service_role;
grant select on tributary.migrations to service_role;
