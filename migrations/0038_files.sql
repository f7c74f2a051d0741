-- Files that are read: what was read of their bytes, the steps of each document, and the fields that its paper has.

-- A file of a tenant, by its bytes. Documents with the same bytes share what was read of it. Retention: as long as a document has these bytes
-- (trigger `file_unused`).
create table public.files (
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    -- The reader that has read it: an older one's pages are read again where a person asks for it.
    reader_version int not null,
    state text not null default 'reading' check (state in ('reading', 'recognising', 'read', 'refused')),
    kind text,
    title text check (length(title) <= 300),
    -- As its head says; what is stored may be less.
    n_pages int,
    is_cut bool not null default false,
    -- Refused: why, in a word and in the reader's own words.
    refusal text,
    detail text check (length(detail) <= 300),
    -- The language in which somebody speaks.
    language text check (length(language) <= 40),
    -- Which reading it is: one that was asked for again is another one, and a reader of the one before writes nothing more.
    reading_id uuid not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (tenant_id, sha256),
    check ((state = 'refused') = (refusal is not null))
);
select tributary.protect('public.files');
grant select on public.files to authenticated;

-- A page, sheet, slide or stretch of speech as it was read, kept as soon as it is. Retention: as long as its file.
create table public.file_pages (
    tenant_id uuid not null,
    sha256 text not null,
    number int not null check (number > 0),
    label text check (length(label) <= 200),
    text text not null,
    read_by text not null check (read_by in ('text', 'ocr', 'speech')),
    confidence real,
    -- The reason why it has no text, or not all of it.
    trouble text,
    primary key (tenant_id, sha256, number),
    foreign key (tenant_id, sha256) references public.files (tenant_id, sha256) on delete cascade
);
select tributary.protect('public.file_pages');
grant select on public.file_pages to authenticated;

-- The steps of a document whose file is read, each with its outcome, so that none is done twice. Retention: as long as its document.
create table public.document_steps (
    tenant_id uuid not null,
    document_id uuid not null,
    step text not null check (step in ('classify', 'transcribe', 'extract')),
    -- done: `outcome` has what came of it. failed: `error` has why, and a person can have it done again.
    state text not null check (state in ('running', 'done', 'failed')),
    outcome jsonb not null default '{}',
    error text check (length(error) <= 500),
    tries int not null default 1,
    -- By which it was done: the reader's version, `rules`, or a model's name.
    done_by text check (length(done_by) <= 200),
    cost_micros bigint not null default 0 check (cost_micros >= 0),
    begun_at timestamptz not null default now(),
    ended_at timestamptz,
    primary key (tenant_id, document_id, step),
    foreign key (tenant_id, document_id) references public.source_documents (tenant_id, id) on delete cascade,
    check ((state = 'running') = (ended_at is null)),
    check ((state = 'failed') = (error is not null))
);
select tributary.protect('public.document_steps');
grant select on public.document_steps to authenticated;

-- The fields of a paper: an invoice's number, a contract's parties. What a person said about one stays. Retention: as long as its document.
create table public.document_fields (
    tenant_id uuid not null,
    document_id uuid not null,
    name text not null check (length(name) between 1 and 60),
    -- Of several with one name, such as an invoice's lines.
    ordinal int not null default 0,
    -- As people read it.
    value text not null check (length(value) <= 2000),
    on_date date,
    amount numeric,
    currency text check (length(currency) <= 8),
    -- Where it was read: the page, and its words there.
    page int,
    quote text check (length(quote) <= 1000),
    confidence real,
    state text not null check (state in ('read', 'checked', 'doubtful', 'said')),
    note text check (length(note) <= 300),
    -- The person who said so. Null: it was read.
    said_by text check (length(said_by) <= 100),
    said_at timestamptz,
    primary key (tenant_id, document_id, name, ordinal),
    foreign key (tenant_id, document_id) references public.source_documents (tenant_id, id) on delete cascade,
    check ((state = 'said') = (said_by is not null) and (said_by is null) = (said_at is null))
);
select tributary.protect('public.document_fields');
grant select on public.document_fields to authenticated;

-- The page on which a chunk stands, and the page's own name where it has one.
alter table public.document_chunks add column page int, add column page_label text;
-- Not valid: nobody waits while all chunks are looked at, and none of them has a page yet.
alter table public.document_chunks add constraint document_chunks_page check (page > 0 and length(page_label) <= 200) not valid;
