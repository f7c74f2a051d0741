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

-- pgvector may live in any schema; what runs with an owner's rights names it instead of searching for it.
do $outer$
declare
    vector_schema text := (
        select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'
    );
begin
    -- Makes a model's table on first use. Insert and delete only; unit length, distance <#>. Retention: with the chunk.
    execute replace($create$
        create function memory.ensure_model(p_name text, p_dim int, p_weight float8) returns void
        language plpgsql security definer
        set search_path = pg_catalog, pg_temp
        as $$
        declare
            known int;
        begin
            select dim into known from memory.models where name = p_name;
            if not found then
                perform pg_advisory_xact_lock(hashtext('memory.ensure_model'));
                insert into memory.models (name, dim, weight) values (p_name, p_dim, p_weight) on conflict do nothing;
                if found then
                    execute format(
                        'create table memory.%1$I (
                             tenant_id uuid not null, chunk_id uuid not null, document_id uuid, embedding @vector@.halfvec(%2$s) not null,
                             primary key (tenant_id, chunk_id),
                             foreign key (tenant_id, chunk_id) references public.document_chunks (tenant_id, id) on delete cascade)',
                        'vectors_' || p_name, p_dim);
                    if p_dim <= 3000 then
                        -- Beside the row, not behind a pointer: an exact search reads every one.
                        execute format('alter table memory.%I alter column embedding set storage plain', 'vectors_' || p_name);
                    end if;
                    execute format('create index on memory.%I (tenant_id, document_id)', 'vectors_' || p_name);
                    perform tributary.protect(format('memory.%I', 'vectors_' || p_name)::regclass);
                end if;
                select dim into known from memory.models where name = p_name;
            end if;
            if known <> p_dim then
                raise exception 'model % has % dimensions here, not %', p_name, known, p_dim using errcode = 'invalid_parameter_value';
            end if;
        end $$
    $create$, '@vector@', vector_schema);

    -- search(): keyword and vector candidates of the caller's tenant, fused by reciprocal rank. The tenant is never an argument. Tenant and
    -- table are spliced as literals, so that partial indexes match and plans are made for them.
    execute replace($create$
        create function memory.search(
            p_query text,
            p_embedding @vector@.halfvec default null,
            p_model text default null,
            p_filters jsonb default '{}',
            p_k int default 10,
            p_mode text default 'hybrid'
        ) returns table (
            document_id uuid, chunk_id uuid, score float8, keyword_rank int, vector_rank int, keyword_score float8, similarity float8,
            terms text[], how text
        )
        language plpgsql stable security definer
        set search_path = pg_catalog, pg_temp
        as $$
        declare
            tenant constant uuid := tributary.tenant();
            k constant int := least(greatest(coalesce(p_k, 10), 1), 100);
            known memory.tenants;
            vector_weight float8 := 1;
            filter text := '';
            has_filter boolean := false;
            docs uuid[];
            n_left bigint;
            keyword_sql text;
            vector_sql text;
            term record;
            term_queries tsquery[] := '{}';
            term_weights float8[] := '{}';
            all_terms tsquery;
            rare_terms tsquery;
        begin
            if tenant is null then
                raise exception 'search needs a caller with a tenant' using errcode = 'insufficient_privilege';
            end if;
            if p_mode not in ('hybrid', 'keyword', 'vector') then
                raise exception 'mode must be hybrid, keyword or vector' using errcode = 'invalid_parameter_value';
            end if;
            select * into known from memory.tenants t where t.tenant_id = tenant;
            if not found then
                return; -- nothing was ever remembered
            end if;
            terms := '{}';
            how := 'keyword';

            -- Filters, as literals.
            if p_filters ? 'source' then
                filter := filter || format(' and d.source_id = %L', (p_filters ->> 'source')::uuid);
            end if;
            if p_filters ? 'type' then
                filter := filter || format(' and d.document_type = %L', p_filters ->> 'type');
            end if;
            if p_filters ? 'since' then
                filter := filter || format(' and coalesce(d.source_created_at, d.created_at) >= %L', (p_filters ->> 'since')::timestamptz);
            end if;
            if p_filters ? 'until' then
                filter := filter || format(' and coalesce(d.source_created_at, d.created_at) < %L', (p_filters ->> 'until')::timestamptz);
            end if;
            if p_filters ? 'contact' then
                filter := filter || format(' and d.contact_id = %L', (p_filters ->> 'contact')::bigint);
            end if;
            has_filter := filter <> '';
            if has_filter then
                -- What it leaves, if little: then that is searched exactly.
                execute format(
                    'select array_agg(id), sum(n_chunks) from (
                         select d.id, d.n_chunks from public.source_documents d where d.tenant_id = %L and d.n_chunks > 0 %s limit 5001) d',
                    tenant, filter)
                into docs, n_left;
                if n_left is null then
                    return;
                end if;
                if n_left > 5000 then
                    docs := null;
                end if;
            end if;

            -- Terms: each in every language of the tenant and as it stands; the rarest first. What is a stop word in one of the languages
            -- only counts when nothing else is left.
            if p_mode <> 'vector' then
                for term in
                    select w.variants, w.query, w.weight, w.is_stop and bool_or(not w.is_stop) over () as is_dropped
                    from (
                        select array_agg(distinct v.lexeme) as variants,
                            string_agg(distinct '(' || v.query || ')', ' | ')::tsquery as query,
                            ln(1 + (greatest(known.n_chunks, s.df) - s.df + 0.5) / (s.df + 0.5)) as weight,
                            bool_or(v.is_stop) as is_stop
                        from (select l.lexeme from unnest(to_tsvector('simple', tributary.fold(left(p_query, 2000)))) l limit 32) l,
                        lateral (
                            select l.lexeme, quote_literal(l.lexeme) as query, false as is_stop
                            union all
                            select s.lexeme, quote_literal(s.lexeme), false
                            from unnest(known.langs) lang, unnest(to_tsvector(lang, l.lexeme)) s
                            union all
                            select l.lexeme, quote_literal(l.lexeme), true
                            from unnest(known.langs) lang where length(to_tsvector(lang, l.lexeme)) = 0
                        ) v,
                        lateral (
                            select coalesce(max(t.df), 0) as df from memory.term_stats t
                            where t.tenant_id = tenant and t.lexeme in (
                                select x.lexeme from unnest(known.langs) lang, unnest(to_tsvector(lang, l.lexeme)) x union select l.lexeme)
                        ) s
                        group by l.lexeme, s.df
                    ) w
                    order by w.weight desc
                loop
                    continue when term.is_dropped;
                    terms := terms || term.variants;
                    term_queries := term_queries || term.query;
                    term_weights := term_weights || term.weight;
                    all_terms := case when all_terms is null then term.query else all_terms && term.query end;
                    if cardinality(term_queries) <= 4 then
                        rare_terms := case when rare_terms is null then term.query else rare_terms || term.query end;
                    end if;
                end loop;
            end if;
            if all_terms is not null then
                keyword_sql := format(
                    'every_term as materialized (
                         select c.id, c.document_id, c.tsv from public.document_chunks c
                         where c.tenant_id = %1$L and c.tsv @@ $1 %2$s limit 500),
                     any_term as materialized (
                         select c.id, c.document_id, c.tsv from public.document_chunks c
                         where c.tenant_id = %1$L and c.tsv @@ $2 and not c.tsv @@ $1 %2$s
                         limit 500 - (select count(*) from every_term)),
                     scored as (
                         select c.id, c.document_id,
                             (select sum(t.weight * ts_rank(''{0.4, 0.4, 0.7, 1}'', c.tsv, t.query)) from unnest($3, $4) t (query, weight)) as score
                         from (select * from every_term union all select * from any_term) c),
                     keyword as (
                         select s.document_id, s.id as chunk_id, s.score, row_number() over (order by s.score desc, s.document_id) as rank
                         from (select distinct on (document_id) * from scored order by document_id, score desc, id) s)',
                    tenant,
                    case
                        when docs is not null then 'and c.document_id = any($6)'
                        when has_filter then format(
                            'and exists (select from public.source_documents d where d.tenant_id = %L and d.id = c.document_id %s)', tenant, filter)
                        else ''
                    end);
            else
                keyword_sql := 'keyword as (select null::uuid as document_id, null::uuid as chunk_id, null::float8 as score, null::bigint as rank where false)';
            end if;

            -- Another model's vector says nothing here.
            if p_mode <> 'keyword' and p_embedding is not null and p_model is not distinct from known.model then
                select m.weight into vector_weight from memory.models m where m.name = known.model;
                if p_mode = 'vector' then
                    vector_weight := 1;
                end if;
                if docs is not null or known.index_name is null then
                    how := 'exact';
                    -- `+ 0`: no index answers this order, so that none is tried.
                    vector_sql := format(
                        'select v.chunk_id, v.document_id, v.embedding operator(@vector@.<#>) $5 as distance from memory.%I v
                         where v.tenant_id = %L %s order by (v.embedding operator(@vector@.<#>) $5) + 0 limit 200',
                        'vectors_' || known.model, tenant,
                        case
                            when docs is not null then 'and v.document_id = any($6)'
                            when has_filter then format(
                                'and exists (select from public.source_documents d where d.tenant_id = %L and d.id = v.document_id %s)', tenant, filter)
                            else ''
                        end);
                else
                    how := 'index';
                    perform set_config('hnsw.ef_search', '200', true), set_config('hnsw.iterative_scan', 'relaxed_order', true);
                    vector_sql := format(
                        'select v.chunk_id, v.document_id, v.embedding operator(@vector@.<#>) $5 as distance from memory.%I v
                         where v.tenant_id = %L %s order by v.embedding operator(@vector@.<#>) $5 limit 200',
                        'vectors_' || known.model, tenant,
                        case
                            -- A subplan, which stays behind the index; a join would be reordered before it.
                            when has_filter then format(
                                'and (select count(*) from public.source_documents d where d.tenant_id = %L and d.id = v.document_id %s) = 1', tenant, filter)
                            else ''
                        end);
                end if;
            else
                vector_sql := 'select null::uuid as chunk_id, null::uuid as document_id, null::float8 as distance where false';
            end if;

            return query execute format(
                'with %s,
                 near as materialized (%s),
                 vector as (
                     select n.document_id, n.chunk_id, n.distance, row_number() over (order by n.distance, n.document_id) as rank
                     from (select distinct on (document_id) * from near order by document_id, distance, chunk_id) n)
                 select coalesce(w.document_id, v.document_id), coalesce(w.chunk_id, v.chunk_id),
                     coalesce(1.0 / (60 + w.rank), 0)::float8 + coalesce((%s)::float8 / (60 + v.rank), 0) as fused,
                     w.rank::int, v.rank::int, w.score::float8, -v.distance::float8, $7, $8
                 from keyword w full join vector v on v.document_id = w.document_id
                 order by fused desc, 1 limit %s',
                keyword_sql, vector_sql, vector_weight, k)
            using all_terms, rare_terms, term_queries, term_weights, p_embedding, docs, terms, how;
        end $$
    $create$, '@vector@', vector_schema);
end $outer$;
revoke execute on function memory.ensure_model(text, int, float8) from public;
grant execute on function memory.ensure_model(text, int, float8) to service_role;
do $$
declare
    search regprocedure := (select oid from pg_proc where pronamespace = 'memory'::regnamespace and proname = 'search');
begin
    execute format('revoke execute on function %s from public', search);
    execute format('grant execute on function %s to service_role, authenticated', search);
end $$;
