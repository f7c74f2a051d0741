-- Memory: what was remembered, cut into chunks that can be found by keyword and by meaning. Only remember() writes here.

create schema memory;
grant usage on schema memory to service_role, authenticated;

-- Connected accounts, channels and the door for files: whatever documents come from.
create table public.connected_sources (
    id uuid not null,
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    provider text not null check (length(provider) between 1 and 40),
    name text not null check (length(name) between 1 and 200),
    created_at timestamptz not null default now(),
    primary key (tenant_id, id),
    constraint connected_sources_id_key unique (id)
);
create unique index connected_sources_manual_key on public.connected_sources (tenant_id) where provider = 'manual';
select tributary.protect('public.connected_sources');
grant select on public.connected_sources to authenticated;

-- One remembered record, message or file. `source_version` is the provider's own version, else its updated time in microseconds: an
-- older one never overwrites a newer. A deleted document stays as a tombstone, so that a late update cannot bring it back.
-- Retention: as long as its source; forgetting a source removes its documents.
create table public.source_documents (
    id uuid not null,
    tenant_id uuid not null,
    source_id uuid not null,
    external_id text not null check (length(external_id) between 1 and 1000),
    document_type text not null check (length(document_type) between 1 and 100),
    title text,
    text text not null default '',
    lang regconfig not null default 'pg_catalog.simple',
    raw_payload jsonb,
    blob_key text,
    content_sha256 bytea not null check (length(content_sha256) = 32),
    embedding_model text,
    embedding_text_sha256 bytea,
    source_version bigint,
    thread_id text,
    contact_id bigint,
    status text not null default 'completed'
        check (status in ('pending', 'classifying', 'transcribing', 'extracting', 'completed', 'skipped', 'failed')),
    skip_reason text,
    source_metadata jsonb not null default '{}',
    source_created_at timestamptz,
    source_updated_at timestamptz,
    -- How many chunks it has: what a filter leaves is counted without touching them.
    n_chunks int not null default 0,
    -- How often its text was written: what was prepared for another one goes round again.
    revision int not null default 1,
    deleted_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (tenant_id, id),
    constraint source_documents_external_key unique (source_id, external_id),
    foreign key (tenant_id, source_id) references public.connected_sources (tenant_id, id) on delete cascade,
    check ((embedding_model is null) = (embedding_text_sha256 is null))
);
create index source_documents_embedding_text_sha256_idx on public.source_documents (embedding_text_sha256)
    where embedding_text_sha256 is not null;
create index source_documents_source_idx on public.source_documents (tenant_id, source_id);
create index source_documents_type_idx on public.source_documents (tenant_id, document_type);
create index source_documents_time_idx on public.source_documents (tenant_id, (coalesce(source_created_at, created_at)));
create index source_documents_updated_idx on public.source_documents (tenant_id, updated_at);
create index source_documents_live_idx on public.source_documents (tenant_id) where deleted_at is null;
create index source_documents_pending_idx on public.source_documents (tenant_id) where embedding_model is null and n_chunks > 0;
create index source_documents_blob_idx on public.source_documents (tenant_id, blob_key) where blob_key is not null;
create index source_documents_contact_idx on public.source_documents (tenant_id, contact_id) where contact_id is not null;
select tributary.protect('public.source_documents');
grant select on public.source_documents to authenticated;

-- The same words on both sides of a search. NFKC and lower case; hyphens, slashes and dots between word characters become spaces, and the
-- joined form is added, so that INV-2041 is found by all three spellings.
create function tributary.fold(t text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    folded text := lower(normalize(t, nfkc));
begin
    if folded !~ '\w[-/.]\w' then
        return folded;
    end if;
    return regexp_replace(folded, '(\w)[-/.](?=\w)', '\1 ', 'g') || coalesce((
        select ' ' || string_agg(translate(m[1], '-/.', ''), ' ')
        from regexp_matches(folded, '\w+(?:[-/.]\w+)+', 'g') m
        where length(m[1]) <= 64
    ), '');
end $$;

-- A chunk is what is found. Its identity is (document, hash, occurrence): where a text was only moved, its chunk and vector stay.
create table public.document_chunks (
    id uuid not null,
    tenant_id uuid not null,
    document_id uuid not null,
    ordinal int not null,
    title text,
    lang regconfig not null,
    text text not null,
    hash bytea not null check (length(hash) = 32),
    occurrence int not null,
    tsv tsvector not null generated always as (
        setweight(to_tsvector('pg_catalog.simple', tributary.fold(coalesce(title, ''))), 'A') || to_tsvector(lang, tributary.fold(text))
    ) stored,
    primary key (tenant_id, id),
    constraint document_chunks_identity unique (tenant_id, document_id, hash, occurrence),
    foreign key (tenant_id, document_id) references public.source_documents (tenant_id, id) on delete cascade
) with (fillfactor = 90);
create index document_chunks_tsv_idx on public.document_chunks using gin (tsv);
select tributary.protect('public.document_chunks');
grant select on public.document_chunks to authenticated;

-- The models that have a table of vectors. `weight`: how much their order counts beside that of keywords (measured; a weak one hurts).
create table memory.models (
    name text primary key check (name ~ '^[a-z][a-z0-9_]{0,39}$'),
    dim int not null check (dim between 1 and 4000),
    weight float8 not null check (weight >= 0),
    created_at timestamptz not null default now()
);

-- What search knows of a tenant: the model it points to, its languages, and estimates that the maintenance task keeps.
create table memory.tenants (
    tenant_id uuid primary key references public.tenants (id) on delete cascade,
    model text not null references memory.models (name),
    langs regconfig[] not null default '{pg_catalog.simple}',
    n_chunks bigint not null default 0,
    -- The valid per-tenant index over its vectors; null: searched exactly.
    index_name text,
    stats_chunks bigint not null default 0,
    maintained_at timestamptz
);

-- In how many chunks of a tenant a lexeme occurs: an estimate; what is missing is rare.
-- Retention: replaced by the maintenance task.
create table memory.term_stats (
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    lexeme text not null,
    df bigint not null,
    primary key (tenant_id, lexeme)
);
select tributary.protect('memory.tenants');
select tributary.protect('memory.term_stats');
alter table memory.models enable row level security;
alter table memory.models force row level security;
create policy service on memory.models to tributary_owner, service_role using (true) with check (true);
grant select on memory.models to service_role;
