-- Sources: accounts at providers, the jobs that read them, and what their records say of clients.

-- A channel and the door for files are sources too; what follows is empty for them.
alter table public.connected_sources
    -- The provider's own name for the account: a source is never reconnected to another one.
    add column account text check (length(account) between 1 and 200),
    add column status text not null default 'active'
        check (status in ('active', 'token_refresh_failed', 'subscription_expired', 'provider_error', 'paused', 'disconnected')),
    -- A code, such as `refresh_token_invalid: invalid_grant`; never a provider's free text, which may hold personal data.
    add column status_message text check (length(status_message) <= 200),
    add column status_at timestamptz not null default now(),
    add column transport text not null default 'rest' check (transport in ('rest', 'mcp', 'fixtures')),
    add column access_token_vault_id uuid,
    add column refresh_token_vault_id uuid,
    add column token_expires_at timestamptz,
    -- Every stored pair has a higher one: whoever writes a pair names the version it was got with.
    add column token_version bigint not null default 0,
    add column token_stored_at timestamptz,
    -- Who refreshes now, and until when nobody else does. A name that outlives its time: that refresh ended nobody knows how.
    add column refresh_by uuid,
    add column refresh_until timestamptz,
    add column scopes text[] not null default '{}',
    add column config jsonb not null default '{}',
    -- From where the next delta starts, in the connector's own words; null: nothing was read to the end yet.
    add column cursors jsonb,
    add column sync_every interval not null default '24 hours' check (sync_every >= interval '1 minute'),
    add column next_sync_at timestamptz,
    add column last_successful_sync_at timestamptz;
create unique index connected_sources_account_key on public.connected_sources (tenant_id, provider, account)
    where account is not null and status <> 'disconnected';
create index connected_sources_due_idx on public.connected_sources (next_sync_at) where status in ('active', 'provider_error') and next_sync_at is not null;

-- Tokens go with their source. A pair that was replaced stays for a day from then (task `tokens`), in case its successor never worked.
alter table tributary.vault add column source_id uuid, add column replaced_at timestamptz;
alter table tributary.vault add constraint vault_source_fkey
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade;
create index vault_source_idx on tributary.vault (tenant_id, source_id) where source_id is not null;

-- A person on the way to a provider and back. The state itself is in the person's address bar; here is its hash, usable once, by the session
-- it was made for. Retention: a day (task `retention`); good for ten minutes.
create table tributary.oauth_states (
    hash bytea primary key check (length(hash) = 32),
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    session_hash bytea not null,
    provider text not null,
    -- Reconnects this source, else connects a new one.
    source_id uuid,
    -- PKCE's verifier, in the vault.
    verifier_vault_id uuid not null,
    redirect_uri text not null,
    transport text not null default 'rest',
    created_at timestamptz not null default now()
);
create index oauth_states_created_idx on tributary.oauth_states (created_at);
select tributary.protect('tributary.oauth_states');

-- One table for every run of work on a source. Retention: 90 days after their end (task `retention`), the newest of a source always.
create table public.sync_jobs (
    id uuid not null,
    tenant_id uuid not null,
    source_id uuid not null,
    kind text not null check (kind in ('full', 'delta', 'push', 'backfill')),
    status text not null default 'pending' check (status in ('pending', 'running', 'completed', 'failed', 'paused', 'cancelled')),
    priority text not null default 'normal' check (priority in ('high', 'normal', 'low')),
    requested_by text not null default 'schedule',
    -- What it does now or why it waits, in words.
    step text,
    note text,
    items_processed bigint not null default 0,
    items_failed bigint not null default 0,
    items_total bigint,
    n_created bigint not null default 0,
    n_updated bigint not null default 0,
    n_unchanged bigint not null default 0,
    n_deleted bigint not null default 0,
    progress_percentage real,
    entities_extracted bigint not null default 0,
    relationships_extracted bigint not null default 0,
    -- Where it goes on, in the connector's own words. Written in the commit of the page before.
    checkpoint_data jsonb not null default '{}',
    error_message text,
    -- The latest troubles, newest last: {at, kind, what}.
    error_details jsonb not null default '[]',
    error_count int not null default 0,
    max_retries int not null default 3,
    embed_calls bigint not null default 0,
    embed_texts bigint not null default 0,
    embed_tokens bigint not null default 0,
    -- Millionths of a dollar, estimated.
    cost_micros bigint not null default 0,
    last_heartbeat timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (tenant_id, id),
    constraint sync_jobs_id_key unique (id),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade,
    check ((finished_at is not null) = (status in ('completed', 'failed', 'cancelled')))
);
create unique index sync_jobs_live_key on public.sync_jobs (source_id)
    where status in ('pending', 'running', 'paused') and kind <> 'backfill';
create unique index sync_jobs_live_backfill_key on public.sync_jobs (source_id)
    where status in ('pending', 'running', 'paused') and kind = 'backfill';
create index sync_jobs_source_idx on public.sync_jobs (source_id, id);
create index sync_jobs_finished_idx on public.sync_jobs (finished_at) where finished_at is not null;
select tributary.protect('public.sync_jobs');
grant select on public.sync_jobs to authenticated;

-- Records that could not be read: each can be tried again or left out. Retention: until it is read, skipped for 90 days (task
-- `retention`), or its source is forgotten.
create table public.sync_failures (
    tenant_id uuid not null,
    source_id uuid not null,
    external_id text not null check (length(external_id) between 1 and 1000),
    job_id uuid,
    reason text not null,
    payload jsonb,
    n_failed int not null default 1,
    failed_at timestamptz not null default now(),
    skipped_at timestamptz,
    primary key (tenant_id, source_id, external_id),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade
);
select tributary.protect('public.sync_failures');
grant select on public.sync_failures to authenticated;

-- What a full pass has met so far: what it did not meet is gone. Retention: with its job's end; of one that failed, with the next that does not.
create table tributary.sync_seen (
    tenant_id uuid not null,
    job_id uuid not null,
    external_id text not null,
    primary key (job_id, external_id),
    foreign key (tenant_id, job_id) references public.sync_jobs (tenant_id, id) on delete cascade
);
select tributary.protect('tributary.sync_seen');

-- What happened to a source, in words, for its page and for Home. Retention: 30 days (task `retention`).
create table public.source_events (
    id uuid not null,
    tenant_id uuid not null,
    source_id uuid not null,
    job_id uuid,
    -- `trouble` or `good` or `info`: how it is shown.
    tone text not null check (tone in ('good', 'info', 'trouble')),
    what text not null check (length(what) <= 500),
    at timestamptz not null default now(),
    primary key (tenant_id, id),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade
);
create index source_events_source_idx on public.source_events (tenant_id, source_id, id);
create index source_events_at_idx on public.source_events (at);
select tributary.protect('public.source_events');
grant select on public.source_events to authenticated;

-- What each tenant's embeddings took, by month and model. Retention: as long as the tenant.
create table public.usage (
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    month date not null,
    model text not null,
    calls bigint not null default 0,
    documents bigint not null default 0,
    texts bigint not null default 0,
    tokens bigint not null default 0,
    cost_micros bigint not null default 0,
    primary key (tenant_id, month, model)
);
select tributary.protect('public.usage');
grant select on public.usage to authenticated;

-- A tenant's month under a cap: one row to be locked, and under which cap something was refused last. Retention: as long as the tenant.
create table tributary.budgets (
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    month date not null,
    refused_under_micros bigint,
    primary key (tenant_id, month)
);
select tributary.protect('tributary.budgets');

-- What a paid call may cost, from before it is made until what it did cost is written. Retention: ten minutes (whoever reserves next).
create table tributary.reservations (
    id uuid primary key,
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    micros bigint not null check (micros >= 0),
    made_at timestamptz not null
);
create index reservations_tenant_idx on tributary.reservations (tenant_id);
select tributary.protect('tributary.reservations');

-- Turns at a provider, shared by all processes: so many units in so many seconds, or none until a time. No tenant: the key says whose it is.
-- Retention: a day after its last use (task `retention`).
create table tributary.gates (
    key text primary key,
    units float8 not null default 0,
    used_at timestamptz not null default now(),
    -- Closed until then, and why.
    closed_until timestamptz,
    reason text,
    failures int not null default 0
);
alter table tributary.gates enable row level security;
alter table tributary.gates force row level security;
create policy service on tributary.gates to tributary_owner, service_role using (true) with check (true);
grant select, insert, update, delete on tributary.gates to service_role;

-- Who says something about whom, by external ids of one source; a client mentions itself. Written with the document, by remember().
-- Retention: with its source.
create table public.document_mentions (
    tenant_id uuid not null,
    source_id uuid not null,
    external_id text not null,
    mentions text not null,
    primary key (source_id, external_id, mentions),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade
);
create index document_mentions_mentioned_idx on public.document_mentions (source_id, mentions);
select tributary.protect('public.document_mentions');
grant select on public.document_mentions to authenticated;

-- Clients whose facts have to be derived again. `marks` grows with each mark: what was derived before the last one is derived once more.
-- Retention: gone once derived.
create table tributary.dirty_clients (
    tenant_id uuid not null,
    source_id uuid not null,
    external_id text not null,
    marks bigint not null default 1,
    marked_at timestamptz not null default now(),
    primary key (source_id, external_id),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade
);
select tributary.protect('tributary.dirty_clients');

-- What is known of a client. Rows with a source are derived from its documents, by lane `client_facts` alone; rows without one are a person's own,
-- and nothing touches them. Retention: derived ones with what they rest on.
create table public.client_intelligence (
    id uuid not null,
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    source_id uuid,
    external_id text check (length(external_id) between 1 and 1000),
    client_name text not null check (length(client_name) between 1 and 500),
    industry text,
    summary text,
    key_facts jsonb not null default '{}',
    -- Which documents each fact rests on: {fact: [document id, …]}.
    evidence jsonb not null default '{}',
    -- Its own text among the documents, where several records were rolled up; one that rests on one record is found by that one.
    document_id uuid,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (tenant_id, id),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade,
    check ((source_id is null) = (external_id is null))
);
create unique index client_intelligence_external_key on public.client_intelligence (source_id, external_id)
    where source_id is not null and external_id is not null;
create index client_intelligence_name_idx on public.client_intelligence (tenant_id, lower(client_name));
select tributary.protect('public.client_intelligence');
grant select on public.client_intelligence to authenticated;

-- What was forgotten, when and by whom: a line without content. Retention: as long as the tenant.
create table public.forgotten (
    id uuid not null,
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    what text not null,
    removed jsonb not null default '{}',
    by text not null,
    asked_at timestamptz not null default now(),
    done_at timestamptz,
    primary key (tenant_id, id)
);
select tributary.protect('public.forgotten');
grant select on public.forgotten to authenticated;

-- A session keeps its plan of a foreign-key check. While a table is empty, all indexes that begin with the tenant cost the same and the
-- youngest is taken: a first sync then reads all of the tenant's rows for every chunk. So the key is made the youngest. (A table with rows
-- has been analysed, and keeps what it has.)
do $$
begin
    if not exists (select from public.source_documents) then
        alter table public.source_documents drop constraint source_documents_pkey cascade;
        alter table public.source_documents add primary key (tenant_id, id);
        alter table public.document_chunks add foreign key (tenant_id, document_id)
            references public.source_documents (tenant_id, id) on delete cascade;
    end if;
    if not exists (select from public.activities) then
        alter table public.activities drop constraint activities_pkey cascade;
        alter table public.activities add primary key (tenant_id, id);
        alter table public.activity_failures add foreign key (tenant_id, original_activity_id)
            references public.activities (tenant_id, id) on delete cascade;
    end if;
end $$;
