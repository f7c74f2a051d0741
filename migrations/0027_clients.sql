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
    add column embedding_text_sha256 bytea,
    -- Rows that are there get theirs by the next migration, in a transaction of its own: readers wait for this one only a moment.
    add constraint client_intelligence_client_check check (client_id is not null) not valid;

-- A new record leads a client of its own until it is matched, also one that a process of an earlier version writes before the functions are there
-- (functions/tributary.client_provenance.sql takes this one's place).
create function tributary.client_provenance() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    new.client_id := coalesce(new.client_id, new.id);
    return new;
end $$;
revoke execute on function tributary.client_provenance() from public;
create trigger client_provenance before insert or update of document_id on public.client_intelligence
    for each row execute function tributary.client_provenance();

-- On large tables the upkeep task `indexes` builds these (store::indexes::LATER).
do $$
begin
    if (select count(*) from (select from public.client_intelligence limit 10001) few) <= 10000 then
        create index client_intelligence_client_idx on public.client_intelligence (tenant_id, client_id);
        create index client_intelligence_leaders_idx on public.client_intelligence (tenant_id, lower(client_name), id) where id = client_id;
        create index client_intelligence_unmatched_idx on public.client_intelligence (tenant_id) where marks <> matched_marks;
        create index client_intelligence_keys_idx on public.client_intelligence using gin (keys);
        create index client_intelligence_owns_idx on public.client_intelligence using gin (owns);
        create index client_intelligence_document_idx on public.client_intelligence (tenant_id, document_id) where document_id is not null;
        create index client_intelligence_embedding_text_sha256_idx on public.client_intelligence (embedding_text_sha256)
            where embedding_text_sha256 is not null;
    end if;
    if (select count(*) from (select from public.source_documents limit 10001) few) <= 10000 then
        create index source_documents_title_idx on public.source_documents using gin (to_tsvector('pg_catalog.simple', tributary.fold(title)))
            where not starts_with(document_type, 'activity.');
    end if;
end $$;

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
