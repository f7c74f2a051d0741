-- memory.terms.sql: returns the terms of a query, each with its lexemes: the word in every language of the tenant, and as it is written.
-- A stop word of one of these languages counts only in a query without other words.
create or replace function memory.terms(p_tenant uuid, p_query text) returns table (lexemes text[])
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    with known as (
        select t.langs from memory.tenants t where t.tenant_id = p_tenant
    ), words as (
        select l.lexeme from unnest(to_tsvector('simple', tributary.fold(left(p_query, 2000)))) l limit 32
    ), terms as (
        select w.lexeme, array_agg(distinct left(v.lexeme, 100)) as lexemes, bool_or(v.is_stop) as is_stop
        from known k, words w,
        lateral (
            select w.lexeme, false as is_stop
            union all
            select s.lexeme, false from unnest(k.langs) lang, unnest(to_tsvector(lang, w.lexeme)) s
            union all
            select w.lexeme, true from unnest(k.langs) lang where length(to_tsvector(lang, w.lexeme)) = 0
        ) v
        group by w.lexeme
    ), counted as (
        select t.*, bool_or(not t.is_stop) over () as has_others from terms t
    )
    select c.lexemes from counted c where not (c.is_stop and c.has_others) order by c.lexeme;
end $$;
revoke execute on function memory.terms(uuid, text) from public;
