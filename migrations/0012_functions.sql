-- Functions, views and triggers are files of their own (functions/), applied after the migrations when their text has changed.

-- Every text that was applied here, by the hash of its file; `is_current` marks the one in force. A process may start when its own texts are
-- among them. Retention: kept; a release adds some tens of rows.
create table tributary.functions (
    name text not null,
    sha256 bytea not null check (length(sha256) = 32),
    is_current boolean not null default true,
    applied_at timestamptz not null default now(),
    primary key (name, sha256)
);
create unique index functions_current_key on tributary.functions (name) where is_current;
alter table tributary.functions enable row level security;
alter table tributary.functions force row level security;
create policy service on tributary.functions to tributary_owner, service_role using (true) with check (true);
grant select on tributary.functions to service_role;
