-- memory.keyword_postings.sql: returns what the server needs to score the caller's chunks by the words of a query, in one row.
-- `lexemes`: those that are searched; `terms`: the number of the word that each belongs to. `total`: about how many chunks there are.
-- `of_lists`: which lexeme a list is of; `from_n`: the number that its entries count from (store::memory::postings describes the bytes).
-- `of_segments`: the segment of each list. A list of more than `p_most` entries is null: memory.posting_lists reads it, for those that do not know it yet.
-- `fresh_n`: the chunks of no segment yet that have a word which is not common, with their lengths; `fresh_ranks`: their ts_rank, lexeme by lexeme.
-- `allowed`: the numbers of the chunks of `p_documents` (memory.filter_documents); null without these.
--
-- The tenant is never an argument.
create or replace function memory.keyword_postings(
    p_query text, p_documents uuid[] default null, p_most int default null,
    out lexemes text[], out terms int[], out total bigint, out mean_length real,
    out of_lists int[], out of_segments bigint[], out from_n bigint[], out lists bytea[],
    out fresh_n bigint[], out fresh_lengths int[], out fresh_ranks real[], out allowed bigint[]
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    tenant constant uuid := tributary.tenant();
    n_indexed bigint;
    looked_for tsquery;
begin
    if tenant is null then
        raise exception 'search needs a caller with a tenant' using errcode = 'insufficient_privilege';
    end if;
    if p_query is null then
        lexemes := '{}';
        terms := '{}';
        return;
    end if;
    select coalesce(array_agg(l.lexeme), '{}'), coalesce(array_agg(t.nth::int), '{}') into lexemes, terms
    from memory.terms(tenant, p_query) with ordinality t (lexemes, nth), unnest(t.lexemes) l (lexeme);
    select coalesce(sum(s.n_chunks), 0), sum(s.n_chunks * s.mean_length) / nullif(sum(s.n_chunks), 0) into n_indexed, mean_length
    from memory.segments s where s.tenant_id = tenant;
    total := greatest(n_indexed, (select t.n_chunks from memory.tenants t where t.tenant_id = tenant));
    if lexemes = '{}' then
        return;
    end if;
    if coalesce(total, 0) = 0 then
        total := (select count(*) from memory.fresh_chunks f where f.tenant_id = tenant); -- not counted yet
    end if;
    -- A word that a tenth of the chunks have finds no fresh chunk by itself, unless no word is rarer; it still counts in those that are found.
    with l as materialized (
        select * from unnest(keyword_postings.lexemes, keyword_postings.terms) with ordinality l (lexeme, term, nth)
    ), p as materialized (
        select l.nth, l.term, p.segment_id, s.first_n, p.n_chunks, case when p.n_chunks <= coalesce(p_most, p.n_chunks) then p.list end as list
        from l join memory.postings p on p.tenant_id = tenant and p.lexeme = l.lexeme collate "C"
        join memory.segments s on s.tenant_id = tenant and s.id = p.segment_id
    ), d as (
        select l.lexeme, coalesce((select sum(p.n_chunks) from p where p.term = l.term), 0) as n from l
    )
    select (select array_agg(p.nth::int) from p), (select array_agg(p.segment_id) from p), (select array_agg(p.first_n) from p),
        (select array_agg(p.list) from p),
        (select string_agg(quote_literal(d.lexeme), ' | ')::tsquery from d where d.n <= greatest(n_indexed / 10, (select min(d.n) from d)))
    into of_lists, of_segments, from_n, lists, looked_for;
    if exists (select from memory.fresh_chunks f where f.tenant_id = tenant) then
        execute format(
            'select array_agg(f.n), array_agg(f.length), %s from memory.fresh_chunks f where f.tenant_id = %L and f.tsv @@ $1',
            (select string_agg(format('array_agg(ts_rank(''{0.4, 0.4, 0.7, 1}'', f.tsv, %L))', quote_literal(l)), ' || ') from unnest(lexemes) l),
            tenant)
        into fresh_n, fresh_lengths, fresh_ranks using looked_for;
    end if;
    if p_documents is not null then
        select coalesce(array_agg(c.n), '{}') into allowed from public.document_chunks c where c.tenant_id = tenant and c.document_id = any (p_documents);
    end if;
end $$;
revoke execute on function memory.keyword_postings(text, uuid[], int) from public;
grant execute on function memory.keyword_postings(text, uuid[], int) to service_role, authenticated;
