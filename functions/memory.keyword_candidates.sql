-- memory.keyword_candidates.sql: returns the caller's documents that match a query by words, best first, each with its best chunk and that chunk's
-- score, and the lexemes that were searched, in one row. For processes of the release before postings, which may still run during an upgrade.
create or replace function memory.keyword_candidates(
    p_query text, p_filters jsonb default '{}', p_documents uuid[] default null, p_chunks int default 500,
    out document_ids uuid[], out chunk_ids uuid[], out scores float8[], out terms text[]
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    with scored as materialized (
        select s.* from memory.keyword_scores(p_query, p_documents) s order by s.score desc, s.n limit p_chunks
    ), best as (
        select distinct on (c.document_id) c.document_id, c.chunk_id, s.score
        from memory.complete_candidates(null, null, (select array_agg(n order by score desc) from scored), '{}', p_filters, p_documents, p_chunks) c
        join scored s on s.n = c.n order by c.document_id, s.score desc, c.chunk_id
    )
    select coalesce(array_agg(b.document_id order by b.score desc, b.document_id), '{}'),
        coalesce(array_agg(b.chunk_id order by b.score desc, b.document_id), '{}'),
        coalesce(array_agg(b.score order by b.score desc, b.document_id), '{}'), (select k.lexemes from memory.keyword_postings(p_query) k)
    from best b
$$;
revoke execute on function memory.keyword_candidates(text, jsonb, uuid[], int) from public;
grant execute on function memory.keyword_candidates(text, jsonb, uuid[], int) to service_role, authenticated;
