-- Assistants: programs that people let into this memory by OAuth, and what programs asked of it over MCP.

-- The key behind an assistant. Nobody knows its secret: the assistant has tokens. Its scopes are what the person allowed, and count no further than the
-- person's role does.
alter table tributary.api_keys add column is_assistant boolean not null default false;

-- Programs that registered themselves. They belong to no tenant: who lets one in is known later.
-- Retention: a day after their last use, if nobody has let them in (task `retention`).
create table tributary.oauth_clients (
    id text primary key check (length(id) between 1 and 200),
    -- As the program calls itself. Nobody has checked it.
    name text not null check (length(name) between 1 and 200),
    redirect_uris text[] not null check (cardinality(redirect_uris) between 1 and 10),
    -- Of a program that can keep a secret.
    secret_hash bytea check (length(secret_hash) = 32),
    created_at timestamptz not null default now(),
    used_at timestamptz not null default now()
);
create index oauth_clients_used_at_idx on tributary.oauth_clients (used_at);
alter table tributary.oauth_clients enable row level security;
alter table tributary.oauth_clients force row level security;
create policy service on tributary.oauth_clients to tributary_owner, service_role using (true) with check (true);
grant select, insert, update, delete on tributary.oauth_clients to service_role;

-- What a person let in: one program, at one address of ours, with these rights (those of its key).
-- `client_id` is the id of a registered program, or the address of the document that describes it.
-- Retention: 90 days after it was revoked or its last token expired (task `retention`). Its key stays, so that audits can name it.
create table tributary.assistants (
    id uuid not null unique,
    tenant_id uuid not null,
    key_id uuid not null,
    -- The key with which the person had signed in: without it, or once it is no longer good, nor is the assistant. No foreign key, because keys stay.
    let_in_by uuid not null,
    client_id text not null check (length(client_id) between 1 and 2000),
    client_name text not null check (length(client_name) between 1 and 200),
    redirect_host text not null check (length(redirect_host) between 1 and 300),
    resource text not null check (length(resource) between 1 and 2000),
    created_at timestamptz not null default now(),
    last_used_at timestamptz,
    revoked_at timestamptz,
    -- person, reuse (of a code or a token that was used up), client (the program gave it back).
    revoked_by text check (revoked_by in ('person', 'reuse', 'client')),
    primary key (tenant_id, id),
    check ((revoked_at is null) = (revoked_by is null)),
    foreign key (tenant_id, key_id) references tributary.api_keys (tenant_id, id) on delete cascade
);
-- Its first column is not that of the primary key, or a check of tokens might go by it.
create index assistants_key_idx on tributary.assistants (key_id, tenant_id);
create index assistants_client_idx on tributary.assistants (client_id);
create index assistants_over_idx on tributary.assistants ((coalesce(revoked_at, last_used_at, created_at)));
select tributary.protect('tributary.assistants');

-- Codes and tokens of assistants, as hashes. A code and a refresh token are good once; shown again, they revoke the assistant.
-- Retention: a day after they expire (task `retention`).
create table tributary.assistant_tokens (
    hash bytea primary key check (length(hash) = 32),
    tenant_id uuid not null,
    assistant_id uuid not null,
    kind text not null check (kind in ('code', 'access', 'refresh')),
    -- Of a code: where it was sent, and the S256 challenge that its verifier answers.
    redirect_uri text,
    challenge text,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    used_at timestamptz,
    check ((kind = 'code') = (redirect_uri is not null and challenge is not null)),
    foreign key (tenant_id, assistant_id) references tributary.assistants (tenant_id, id) on delete cascade
);
create index assistant_tokens_assistant_idx on tributary.assistant_tokens (tenant_id, assistant_id);
create index assistant_tokens_expires_at_idx on tributary.assistant_tokens (expires_at);
select tributary.protect('tributary.assistant_tokens');

-- Calls over MCP, of tools and for resources: who, what, how long, how much was found. Arguments only where the operator keeps them (`MCP_KEEP_ARGUMENTS`).
-- Retention: 90 days (task `retention`).
create table tributary.mcp_calls (
    id uuid not null,
    tenant_id uuid not null,
    key_id uuid not null,
    tool text not null check (length(tool) between 1 and 100),
    -- ok, refused (the caller can mend it), failed (we could not), cancelled (the client gave it up).
    outcome text not null check (outcome in ('ok', 'refused', 'failed', 'cancelled')),
    duration_ms int not null check (duration_ms >= 0),
    n_hits int check (n_hits >= 0),
    arguments jsonb,
    at timestamptz not null default now(),
    primary key (tenant_id, id),
    foreign key (tenant_id, key_id) references tributary.api_keys (tenant_id, id) on delete cascade
);
create index mcp_calls_key_idx on tributary.mcp_calls (tenant_id, key_id, at desc);
create index mcp_calls_at_idx on tributary.mcp_calls (at);
select tributary.protect('tributary.mcp_calls');
