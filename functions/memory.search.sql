-- memory.search.sql: keyword and vector candidates of the caller's tenant, fused by reciprocal rank. The tenant is never an argument.
-- Tenant and table are spliced as literals, so that partial indexes match and plans are made for them.
create or replace function memory.search(
    p_query text,
    p_embedding halfvec default null,
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
    -- pgvector may be in any schema. With an owner's rights its operator is named, never searched for.
    vector_schema constant text := (
        select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector');
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
                'select v.chunk_id, v.document_id, v.embedding operator(%1$I.<#>) $5 as distance from memory.%2$I v
                 where v.tenant_id = %3$L %4$s order by (v.embedding operator(%1$I.<#>) $5) + 0 limit 200',
                vector_schema, 'vectors_' || known.model, tenant,
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
                'select v.chunk_id, v.document_id, v.embedding operator(%1$I.<#>) $5 as distance from memory.%2$I v
                 where v.tenant_id = %3$L %4$s order by v.embedding operator(%1$I.<#>) $5 limit 200',
                vector_schema, 'vectors_' || known.model, tenant,
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
end $$;
revoke execute on function memory.search(text, halfvec, text, jsonb, int, text) from public;
grant execute on function memory.search(text, halfvec, text, jsonb, int, text) to service_role, authenticated;
