-- Mailboxes: accounts whose provider tells of changes, and whose letters are filtered.

alter table public.connected_sources
    -- The subscription by which the provider tells of changes, until when it is good, and the secret that comes back with every notice. A
    -- provider that tells a topic of all mailboxes names no subscription and has no secret.
    add column provider_subscription_id text check (length(provider_subscription_id) between 1 and 500),
    add column subscription_expires_at timestamptz,
    add column webhook_client_state text check (length(webhook_client_state) between 16 and 128),
    -- The time at which the subscription is made or renewed next: a few minutes ahead while a process is at it, so that no other one is. Null: now.
    add column subscription_due_at timestamptz,
    -- Failed tries in a row, and a code for the last one.
    add column subscription_failures int not null default 0,
    add column subscription_trouble text check (length(subscription_trouble) <= 200),
    -- The last notice that a sync has read.
    add column last_notice_at timestamptz,
    -- The cursor as text: Gmail's history id, Outlook's delta links by folder.
    add column last_sync_token text generated always as (cursors #>> '{}') stored;
create unique index connected_sources_subscription_key on public.connected_sources (provider, provider_subscription_id)
    where provider_subscription_id is not null;
-- A notice of a topic names an account alone, which several tenants may have connected.
create index connected_sources_named_idx on public.connected_sources (provider, account) where account is not null;
create index connected_sources_subscription_due_idx on public.connected_sources (provider, (coalesce(subscription_due_at, '-infinity'::timestamptz)))
    where status in ('active', 'provider_error', 'subscription_expired');
-- A mailbox whose subscription is gone is synced all the same.
drop index public.connected_sources_due_idx;
create index connected_sources_due_idx on public.connected_sources (next_sync_at)
    where status in ('active', 'provider_error', 'subscription_expired') and next_sync_at is not null;

-- Mailboxes of which something was heard that no sync has read yet: at most one row each, however often it was heard. Retention: until a sync
-- that began after the last notice is complete.
-- `requested_at` only grows, and is later than `claimed_at` if something was heard since. `attempts` are those of the sync that has the row.
create table public.pending_syncs (
    source_id uuid primary key,
    tenant_id uuid not null,
    status text not null default 'pending' check (status in ('pending', 'processing')),
    claimed_at timestamptz,
    attempts int not null default 0,
    last_error text check (length(last_error) <= 500),
    requested_at timestamptz not null default now(),
    not_before timestamptz,
    check ((claimed_at is null) = (status = 'pending')),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade
);
create index pending_syncs_source_idx on public.pending_syncs (tenant_id, source_id);
select tributary.protect('public.pending_syncs');
grant select on public.pending_syncs to authenticated;

-- Letters that a sync has dealt with. One that was left out has the reason, and enough of its head for a person to decide. Retention: as long as its
-- source.
create table public.processed_messages (
    source_id uuid not null,
    -- The provider's own id.
    message_id text not null check (length(message_id) between 1 and 900),
    tenant_id uuid not null,
    processed_at timestamptz not null default now(),
    -- The name of the rule that left it out.
    skip_reason text check (length(skip_reason) between 1 and 100),
    received_at timestamptz,
    sender text check (length(sender) <= 320),
    subject text check (length(subject) <= 500),
    -- A person wants it all the same: no rule leaves it out again.
    let_in_at timestamptz,
    let_in_by text,
    primary key (source_id, message_id),
    check ((let_in_at is null) = (let_in_by is null)),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade
);
create index processed_messages_source_idx on public.processed_messages (tenant_id, source_id);
create index processed_messages_skipped_idx on public.processed_messages (source_id, received_at, message_id) where skip_reason is not null;
create index processed_messages_received_idx on public.processed_messages (source_id, received_at);
select tributary.protect('public.processed_messages');
grant select on public.processed_messages to authenticated;

-- Rules of a mailbox that differ from those that the program ships: its own ones, and shipped ones that were switched. Retention: as long as its source.
create table public.mail_rules (
    tenant_id uuid not null,
    source_id uuid not null,
    name text not null check (length(name) between 1 and 100),
    is_on boolean not null,
    -- The conditions of a rule of its own; null for a shipped one.
    conditions jsonb,
    changed_by text not null,
    changed_at timestamptz not null default now(),
    primary key (tenant_id, source_id, name),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade
);
select tributary.protect('public.mail_rules');
grant select on public.mail_rules to authenticated;

-- Days of a mailbox as its provider counts them and as they are stored: equal, or with the ids that differ. Retention: 90 days (task `retention`).
create table public.mailbox_checks (
    tenant_id uuid not null,
    source_id uuid not null,
    day date not null,
    checked_at timestamptz not null default now(),
    n_provider int not null,
    n_stored int not null,
    -- Left out, by reason.
    skipped jsonb not null default '{}',
    n_failed int not null default 0,
    -- The provider has them, and nothing here knows of them; and the other way round. At most a thousand each.
    missing text[] not null default '{}',
    surplus text[] not null default '{}',
    primary key (source_id, day),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade
);
create index mailbox_checks_source_idx on public.mailbox_checks (tenant_id, source_id);
select tributary.protect('public.mailbox_checks');
grant select on public.mailbox_checks to authenticated;
