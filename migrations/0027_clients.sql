-- Clients are one: records of one company or person from several sources are one client, by keys that they have in common and by what people decide.

alter table public.client_intelligence
    -- The record that leads the client. Its id is the client's id. Lane `client_facts` and the acts of people keep it, and nothing else.
    add column client_id uuid,
    -- Why this record is of that client: {by, key}. Null: it leads.
    add column matched_by jsonb,
    -- By which it is matched, as its provider's rules read it: {kind, names, domains, emails, of}.
    add column identity jsonb not null default '{}',
    -- The same as keys (`tributary.client_keys`).
    add column keys text[] not null default '{}',
    -- Of a leading record: the keys that are this client's alone. Contacts find their client by them.
    add column owns text[] not null default '{}',
    -- `marks` grows when the record has to be matched again; `matched_marks` is what it was when that was done.
    add column marks bigint not null default 1,
    add column matched_marks bigint not null default 0,
    -- Of what a person wrote: who said each fact, and when: {fact: {by, at}}.
    add column said jsonb not null default '{}',
    -- Copies of its document's, by triggers: the model and the text that its vectors are of.
    add column embedding_model text,
    add column embedding_text_sha256 bytea;
update public.client_intelligence c
set client_id = c.id, embedding_model = d.embedding_model, embedding_text_sha256 = d.embedding_text_sha256
from public.client_intelligence o left join public.source_documents d on d.tenant_id = o.tenant_id and d.id = o.document_id
where o.tenant_id = c.tenant_id and o.id = c.id;
-- A client that a person wrote before is matched by its name.
update public.client_intelligence set identity = jsonb_build_object('kind', 'organisation', 'names', jsonb_build_array(client_name)) where source_id is null;
alter table public.client_intelligence alter column client_id set not null;
create index client_intelligence_client_idx on public.client_intelligence (tenant_id, client_id);
create index client_intelligence_leaders_idx on public.client_intelligence (tenant_id, lower(client_name), id) where id = client_id;
create index client_intelligence_unmatched_idx on public.client_intelligence (tenant_id) where marks <> matched_marks;
create index client_intelligence_keys_idx on public.client_intelligence using gin (keys);
create index client_intelligence_owns_idx on public.client_intelligence using gin (owns);
create index client_intelligence_document_idx on public.client_intelligence (tenant_id, document_id) where document_id is not null;
create index client_intelligence_embedding_text_sha256_idx on public.client_intelligence (embedding_text_sha256)
    where embedding_text_sha256 is not null;

-- What people decided about clients: that two records are one client, or that a record is matched with nothing. A record is named by
-- `{source}/{external id}`, curated facts by `hand/{id}` and a contact by `contact/{id}`, so that a decision outlives a record that comes back.
-- Undoing a decision deletes it. Retention: until then, or with the tenant.
create table public.client_decisions (
    id uuid not null,
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    kind text not null check (kind in ('merge', 'split')),
    record text not null check (length(record) between 1 and 1100),
    other text check (length(other) between 1 and 1100),
    said_by text not null,
    said_at timestamptz not null default now(),
    primary key (tenant_id, id),
    check ((other is not null) = (kind = 'merge'))
);
create unique index client_decisions_record_key on public.client_decisions (tenant_id, kind, record, coalesce(other, ''));
create index client_decisions_other_idx on public.client_decisions (tenant_id, other) where other is not null;
select tributary.protect('public.client_decisions');
grant select on public.client_decisions to authenticated;

-- Clients that were derived before have no keys yet.
insert into tributary.dirty_clients (tenant_id, source_id, external_id)
select tenant_id, source_id, external_id from public.client_intelligence where source_id is not null
order by source_id, external_id
on conflict (source_id, external_id) do update set marks = tributary.dirty_clients.marks + 1;
