-- memory.terms.sql: returns the terms of a query, each with its lexemes: the word in every language of the tenant, and as it is written.
-- A stop word of one of these languages counts only in a query without other words. Of more than 32 terms the rarest are taken, and of equally rare ones
-- those that come first.
create or replace function memory.terms(p_tenant uuid, p_query text) returns table (lexemes text[])
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    with known as (
        select t.langs from memory.tenants t where t.tenant_id = p_tenant
    ), words as (
        select l.lexeme, l.positions[1] as place from unnest(to_tsvector('simple', tributary.fold(left(p_query, 2000)))) l
    ), terms as (
        select w.lexeme, w.place, array_agg(distinct left(v.lexeme, 100)) as lexemes, bool_or(v.is_stop) as is_stop
        from known k, words w,
        lateral (
            select w.lexeme, false as is_stop
            union all
            select s.lexeme, false from unnest(k.langs) lang, unnest(to_tsvector(lang, w.lexeme)) s
            union all
            select w.lexeme, true from unnest(k.langs) lang where length(to_tsvector(lang, w.lexeme)) = 0
        ) v
        group by w.lexeme, w.place
    ), counted as (
        select t.*, bool_or(not t.is_stop) over () as has_others from terms t
    ), searched as (
        select c.*, count(*) over () as n_terms from counted c where not (c.is_stop and c.has_others)
    ), rarest as (
        select s.lexeme, s.lexemes from searched s
        cross join lateral (select case when s.n_terms > 32 then (
            select sum(p.n_chunks) from memory.postings p where p.tenant_id = p_tenant and p.lexeme = any (s.lexemes)) end as n_listed) l
        -- A word that no chunk has finds nothing, so it comes last.
        order by s.n_terms > 32 and l.n_listed is null and not exists (
            select from memory.fresh_chunks f where f.tenant_id = p_tenant
                and f.tsv @@ (select string_agg(quote_literal(x), ' | ') from unnest(s.lexemes) x)::tsquery), coalesce(l.n_listed, 0), s.place
        limit 32
    )
    select r.lexemes from rarest r order by r.lexeme;
end $$;
revoke execute on function memory.terms(uuid, text) from public;
