-- Keywords are found by postings: for each lexeme of a tenant, the chunks that have it, with what it weighs in each (docs/adr/0027-postings.md).

-- A chunk's number, by which postings name it. It gets another one when its words change (trigger `number_chunk`), so an entry of a posting never
-- lies: its chunk is as it was, or gone.
create sequence memory.chunk_numbers;
alter table public.document_chunks add column n bigint not null default nextval('memory.chunk_numbers');
grant usage on sequence memory.chunk_numbers to service_role;
create unique index document_chunks_n_idx on public.document_chunks (tenant_id, n);

-- The chunks that no segment has yet, with their words. Triggers on `document_chunks` keep it in the transaction that writes the chunk.
-- Retention: until the next segment takes them (upkeep task `postings`).
create table memory.fresh_chunks (
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    n bigint not null,
    length int not null,
    tsv tsvector not null,
    primary key (tenant_id, n)
);
-- Small pending lists: each search reads them whole.
create index fresh_chunks_tsv_idx on memory.fresh_chunks using gin (tsv) with (gin_pending_list_limit = 256);
select tributary.protect('memory.fresh_chunks');

-- A segment: postings of some chunks, written once and never changed. The upkeep task `postings` makes one of fresh chunks, and one large one of several.
-- `mean_length`: of its chunks, in lexemes; what a word weighs in a chunk depends on it. Retention: until a larger one replaces it.
create table memory.segments (
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    id bigint generated always as identity,
    first_n bigint not null,
    last_n bigint not null,
    n_chunks int not null,
    mean_length real not null,
    made_at timestamptz not null default now(),
    primary key (tenant_id, id)
);
select tributary.protect('memory.segments');

-- The chunks of a segment that have a lexeme, by rising number: store::memory::postings describes the bytes. A lexeme of more than 100 characters
-- is kept by its beginning. Retention: with its segment.
create table memory.postings (
    tenant_id uuid not null,
    lexeme text collate "C" not null,
    segment_id bigint not null,
    n_chunks int not null,
    list bytea not null,
    primary key (tenant_id, lexeme, segment_id)
);
-- Lists are small numbers that compress little, and are read whole.
alter table memory.postings alter column list set storage external;
select tributary.protect('memory.postings');

-- What was remembered before.
insert into memory.fresh_chunks (tenant_id, n, length, tsv) select tenant_id, n, length(tsv), tsv from public.document_chunks;
alter table public.document_chunks drop column tsv;
-- A model's weight is the share of its similarity in the score of a hit now (engine::memory::embed).
update memory.models set weight = case when name like 'fast%' then 0.35 else 0.7 end;
drop function if exists memory.query_terms(uuid, text);
