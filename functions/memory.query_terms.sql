-- memory.query_terms.sql: the terms of a query, rarest first: each as its lexemes, as a tsquery of them, and with its rarity (BM25's own).
-- A term is looked for in every language of the tenant and as it stands. A stop word of one of the languages counts only when nothing else is left.
create or replace function memory.query_terms(p_tenant uuid, p_query text)
returns table (lexemes text[], query tsquery, weight float8)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    with known as (
        select t.langs, t.n_chunks from memory.tenants t where t.tenant_id = p_tenant
    ), words as (
        select l.lexeme from unnest(to_tsvector('simple', tributary.fold(left(p_query, 2000)))) l limit 32
    ), terms as (
        select array_agg(distinct v.lexeme) as lexemes,
            string_agg(distinct '(' || quote_literal(v.lexeme) || ')', ' | ')::tsquery as query,
            ln(1 + (greatest(k.n_chunks, s.df) - s.df + 0.5) / (s.df + 0.5)) as weight,
            bool_or(v.is_stop) as is_stop
        from known k, words w,
        lateral (
            select w.lexeme, false as is_stop
            union all
            select s.lexeme, false from unnest(k.langs) lang, unnest(to_tsvector(lang, w.lexeme)) s
            union all
            select w.lexeme, true from unnest(k.langs) lang where length(to_tsvector(lang, w.lexeme)) = 0
        ) v,
        lateral (
            select coalesce(max(t.df), 0) as df from memory.term_stats t
            where t.tenant_id = p_tenant and t.lexeme in (
                select x.lexeme from unnest(k.langs) lang, unnest(to_tsvector(lang, w.lexeme)) x union select w.lexeme)
        ) s
        group by w.lexeme, s.df, k.n_chunks
    ), counted as (
        select t.*, bool_or(not t.is_stop) over () as has_others from terms t
    )
    select c.lexemes, c.query, c.weight::float8 from counted c where not (c.is_stop and c.has_others) order by c.weight desc;
end $$;
revoke execute on function memory.query_terms(uuid, text) from public;
