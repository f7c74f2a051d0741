-- memory.keyword_candidates.sql: the caller's documents that match a query by words, best first, each with its best chunk and that chunk's score,
-- and the lexemes that were looked for. One row. `p_documents`: only these (memory.filter_documents); `p_chunks`: how many chunks are scored.
--
-- Candidates are chunks with all terms, then chunks with any of the four rarest. A chunk's score is the sum over the terms of rarity times
-- ts_rank. The tenant is never an argument; it is spliced as a literal, so that plans are made for it.
create or replace function memory.keyword_candidates(
    p_query text, p_filters jsonb default '{}', p_documents uuid[] default null, p_chunks int default 500,
    out document_ids uuid[], out chunk_ids uuid[], out scores float8[], out terms text[]
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    tenant constant uuid := tributary.tenant();
    condition constant text := memory.filter_condition(p_filters);
    term record;
    queries tsquery[] := '{}';
    weights float8[] := '{}';
    all_terms tsquery;
    rare_terms tsquery;
begin
    if tenant is null then
        raise exception 'search needs a caller with a tenant' using errcode = 'insufficient_privilege';
    end if;
    document_ids := '{}';
    chunk_ids := '{}';
    scores := '{}';
    terms := '{}';
    for term in select t.* from memory.query_terms(tenant, p_query) t
    loop
        terms := terms || term.lexemes;
        queries := queries || term.query;
        weights := weights || term.weight;
        all_terms := case when all_terms is null then term.query else all_terms && term.query end;
        if cardinality(queries) <= 4 then
            rare_terms := case when rare_terms is null then term.query else rare_terms || term.query end;
        end if;
    end loop;
    if all_terms is null then
        return;
    end if;
    execute format(
        'with every_term as materialized (
             select c.id, c.document_id, c.tsv from public.document_chunks c
             where c.tenant_id = %1$L and c.tsv @@ $1 %2$s limit %3$s),
         any_term as materialized (
             select c.id, c.document_id, c.tsv from public.document_chunks c
             where c.tenant_id = %1$L and c.tsv @@ $2 and not c.tsv @@ $1 %2$s
             limit %3$s - (select count(*) from every_term)),
         scored as (
             select c.id, c.document_id,
                 (select sum(t.weight * ts_rank(''{0.4, 0.4, 0.7, 1}'', c.tsv, t.query)) from unnest($3, $4) t (query, weight)) as score
             from (select * from every_term union all select * from any_term) c),
         best as (
             select b.* from (select distinct on (document_id) * from scored order by document_id, score desc, id) b
             order by b.score desc, b.document_id)
         select coalesce(array_agg(document_id), ''{}''), coalesce(array_agg(id), ''{}''), coalesce(array_agg(score), ''{}'') from best',
        tenant,
        case
            when p_documents is not null then 'and c.document_id = any($5)'
            when condition <> '' then format(
                'and exists (select from public.source_documents d where d.tenant_id = %L and d.id = c.document_id %s)', tenant, condition)
            else ''
        end,
        p_chunks)
    into document_ids, chunk_ids, scores
    using all_terms, rare_terms, queries, weights, p_documents;
end $$;
revoke execute on function memory.keyword_candidates(text, jsonb, uuid[], int) from public;
grant execute on function memory.keyword_candidates(text, jsonb, uuid[], int) to service_role, authenticated;
