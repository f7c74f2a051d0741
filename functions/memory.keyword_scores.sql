-- memory.keyword_scores.sql: returns the numbers of the caller's chunks that have words of a query, with their scores. For `memory.search`: the server
-- scores by the same rule (engine::memory::recall::keyword), with all words. Here the common words of a large memory are left out, so that about 50,000
-- entries are read at most. `p_documents`: only chunks of these (memory.filter_documents).
create or replace function memory.keyword_scores(p_query text, p_documents uuid[] default null) returns table (n bigint, score float8)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    with w as materialized (
        select * from memory.keyword_postings(p_query, p_documents)
    ), lexemes as (
        select u.term, u.nth from w, unnest(w.terms) with ordinality u (term, nth)
    ), lists as (
        select l.term, u.from_n, u.list, octet_length(u.list) / 5 as size
        from w, unnest(w.of_lists, w.from_n, w.lists) u (nth, from_n, list), lexemes l where l.nth = u.nth
    ), fresh as (
        -- Ranks come lexeme by lexeme, in the order of the chunks.
        select l.term, f.n, r.rank
        from w, unnest(w.fresh_ranks) with ordinality r (rank, nth), unnest(w.fresh_n) with ordinality f (n, nth), lexemes l
        where r.rank > 0 and f.nth = (r.nth - 1) % cardinality(w.fresh_n) + 1 and l.nth = (r.nth - 1) / cardinality(w.fresh_n) + 1
    ), counted as (
        select t.term, coalesce((select sum(l.size) from lists l where l.term = t.term), 0) as n_listed,
            (select count(*) from fresh f where f.term = t.term) as n_fresh
        from (select distinct term from lexemes) t
    ), weighed as (
        select c.term, ln(1 + (greatest(w.total, c.n_listed + c.n_fresh) - c.n_listed - c.n_fresh + 0.5) / (c.n_listed + c.n_fresh + 0.5)) as rarity,
            sum(c.n_listed) over (order by c.n_listed, c.term) - c.n_listed < 50000 as is_read
        from counted c, w
    ), entries as (
        select l.from_n + (get_byte(l.list, i * 5)::int8 << 24) + (get_byte(l.list, i * 5 + 1) << 16) + (get_byte(l.list, i * 5 + 2) << 8)
            + get_byte(l.list, i * 5 + 3) as n, w.rarity * get_byte(l.list, i * 5 + 4) * 2.2 / 255 as part
        from lists l join weighed w on w.term = l.term and w.is_read, generate_series(0, l.size - 1) i
        union all
        -- One occurrence in a text has the rank 0.24, and weighs about 1.
        select f.n, w.rarity * least(f.rank / 0.24, 2.2) from fresh f join weighed w on w.term = f.term
    )
    select e.n, sum(e.part)::float8 from entries e, w where w.allowed is null or e.n = any (w.allowed) group by e.n
$$;
revoke execute on function memory.keyword_scores(text, uuid[]) from public;
grant execute on function memory.keyword_scores(text, uuid[]) to service_role, authenticated;
