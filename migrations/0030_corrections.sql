-- What people correct: documents that they delete, contacts that they merge, and notes that they write about a client.

-- A person deleted the document: it stays deleted when its source sends it again, until a person lets it in again. The row is its tombstone; its content
-- is gone. Retention: as long as its source, or the contact that it came from.
alter table public.source_documents add column removed_at timestamptz, add column removed_by text;
-- Not validated: no row has a value yet, and the table may be large. It also keeps a program that does not know these columns from bringing such a
-- document back.
alter table public.source_documents add constraint source_documents_removed
    check ((removed_at is null) = (removed_by is null) and (removed_at is null or deleted_at is not null)) not valid;

-- The number of records that a job has left out because a person deleted their documents.
alter table public.sync_jobs add column n_kept_out bigint not null default 0;

-- What was one contact and is part of another now, so that it can be undone: `merged` is the contact as it was, with its addresses, its decisions about
-- clients and the merges into it; `activities` and `documents` are those that moved. Retention: until it is undone, or the contact is deleted or forgotten.
create table public.contact_merges (
    id uuid not null,
    tenant_id uuid not null,
    contact_id bigint not null,
    merged jsonb not null,
    activities uuid[] not null,
    documents uuid[] not null,
    merged_by text not null,
    merged_at timestamptz not null default now(),
    -- It is merged when everything has moved; until then, and while it is undone, neither contact is changed, deleted or forgotten.
    state text not null default 'merging' check (state in ('merging', 'merged', 'undoing')),
    primary key (tenant_id, id),
    foreign key (tenant_id, contact_id) references public.contacts (tenant_id, id) on delete cascade
);
create index contact_merges_contact_idx on public.contact_merges (tenant_id, contact_id);
create index contact_merges_unfinished_idx on public.contact_merges (tenant_id) where state <> 'merged';
select tributary.protect('public.contact_merges');
grant select on public.contact_merges to authenticated;

-- Ids are unique by themselves. The key (tenant_id, id) alone would let a session check foreign keys by another index of the tenant's, once planned so.
create unique index client_intelligence_id_key on public.client_intelligence (id);

-- The client that a note, a task or a meeting is about, by the record that led it. Retention: as long as the activity and the record.
create table public.activity_clients (
    tenant_id uuid not null,
    activity_id uuid not null,
    record_id uuid not null,
    primary key (tenant_id, activity_id),
    -- By the ids alone, as in activity_payloads.
    foreign key (activity_id) references public.activities (id) on delete cascade,
    foreign key (record_id) references public.client_intelligence (id) on delete cascade
);
create index activity_clients_activity_idx on public.activity_clients (activity_id);
create index activity_clients_record_idx on public.activity_clients (record_id);
select tributary.protect('public.activity_clients');
grant select on public.activity_clients to authenticated;
