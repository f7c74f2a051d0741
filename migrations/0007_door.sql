-- The door: every channel kind, whom an event is from, and what was refused.

-- Addresses of contacts, in the one form in which they are looked up. Rows of origin `contact` are kept by a trigger from the contact's own
-- columns; `added` ones were linked by a person. Several contacts may share an address: the one there longest is meant.
create table public.contact_keys (
    tenant_id uuid not null,
    kind text not null check (kind in ('email', 'phone', 'digits')),
    key text not null check (length(key) between 1 and 320),
    contact_id bigint not null,
    origin text not null default 'contact' check (origin in ('contact', 'added')),
    -- As it was given.
    address text,
    primary key (tenant_id, kind, key, contact_id),
    foreign key (tenant_id, contact_id) references public.contacts (tenant_id, id) on delete cascade
);
create index contact_keys_contact_idx on public.contact_keys (tenant_id, contact_id);
select tributary.protect('public.contact_keys');
grant select on public.contact_keys to authenticated;

-- What was refused and why, never what was sent. Written once a second by each process, alike ones together. Retention: 30 days (task
-- `retention`).
create table tributary.channel_refusals (
    id bigint generated always as identity,
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    channel_id uuid not null,
    status int not null,
    reason text not null check (length(reason) between 1 and 300),
    address text,
    n int not null default 1 check (n > 0),
    created_at timestamptz not null default now(),
    primary key (tenant_id, id)
);
create index channel_refusals_channel_idx on tributary.channel_refusals (tenant_id, channel_id, created_at);
create index channel_refusals_created_idx on tributary.channel_refusals (created_at);
select tributary.protect('tributary.channel_refusals');
grant select on tributary.channel_refusals to authenticated;

-- Files that came with an event. The row commits with the activity, after the bytes are in the blob store. Retention: as long as the activity.
create table tributary.activity_attachments (
    tenant_id uuid not null,
    activity_id uuid not null,
    ordinal int not null,
    name text not null,
    content_type text,
    content_id text,
    bytes bigint not null,
    blob_key text not null,
    primary key (tenant_id, activity_id, ordinal),
    -- By the id alone, as for the payloads.
    foreign key (activity_id) references public.activities (id) on delete cascade
);
create index activity_attachments_blob_idx on tributary.activity_attachments (tenant_id, blob_key);
create index activity_attachments_activity_idx on tributary.activity_attachments (activity_id);
select tributary.protect('tributary.activity_attachments');
grant select on tributary.activity_attachments to authenticated;
