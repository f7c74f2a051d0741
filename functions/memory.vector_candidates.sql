-- memory.vector_candidates.sql: returns the caller's documents nearest to a vector, nearest first, each with its nearest chunk and that chunk's
-- similarity, in one row. For processes of the release before postings, which may still run during an upgrade.
create or replace function memory.vector_candidates(
    p_model text, p_embedding halfvec, p_filters jsonb default '{}', p_documents uuid[] default null, p_chunks int default 200,
    out document_ids uuid[], out chunk_ids uuid[], out similarities float8[], out how text
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(b.document_id order by b.similarity desc, b.document_id), '{}'),
        coalesce(array_agg(b.chunk_id order by b.similarity desc, b.document_id), '{}'),
        coalesce(array_agg(b.similarity order by b.similarity desc, b.document_id), '{}'), max(n.how)
    from memory.nearest_chunks(p_model, p_embedding, p_filters, p_documents, p_chunks) n
    left join lateral (
        select distinct on (c.document_id) c.* from unnest(n.document_ids, n.chunk_ids, n.similarities) c (document_id, chunk_id, similarity)
        order by c.document_id, c.similarity desc, c.chunk_id
    ) b on true
    where b.document_id is not null or cardinality(n.chunk_ids) = 0
$$;
revoke execute on function memory.vector_candidates(text, halfvec, jsonb, uuid[], int) from public;
grant execute on function memory.vector_candidates(text, halfvec, jsonb, uuid[], int) to service_role, authenticated;
