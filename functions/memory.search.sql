-- memory.search.sql: a whole search in one call: keyword and vector candidates of the caller's tenant, fused by reciprocal rank. The server itself
-- fuses in Rust (engine::memory::recall::fusion) by the same rule; a test compares the two.
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
    documents constant uuid[] := memory.filter_documents(p_filters);
    weight constant float8 := case when p_mode = 'vector' then 1 else (select m.weight from memory.models m where m.name = p_model) end;
begin
    if p_mode not in ('hybrid', 'keyword', 'vector') then
        raise exception 'mode must be hybrid, keyword or vector' using errcode = 'invalid_parameter_value';
    end if;
    return query
    with k as materialized (
        select * from memory.keyword_candidates(case when p_mode <> 'vector' then p_query end, p_filters, documents)
    ), v as materialized (
        select * from memory.vector_candidates(p_model, case when p_mode <> 'keyword' then p_embedding end, p_filters, documents)
    )
    select coalesce(w.document_id, n.document_id), coalesce(w.chunk_id, n.chunk_id),
        coalesce(1.0 / (60 + w.rank), 0)::float8 + coalesce(weight / (60 + n.rank), 0) as fused,
        w.rank::int, n.rank::int, w.score, n.similarity, (select k.terms from k), (select v.how from v)
    from (select u.* from k, unnest(k.document_ids, k.chunk_ids, k.scores) with ordinality u (document_id, chunk_id, score, rank)) w
    full join (
        select u.* from v, unnest(v.document_ids, v.chunk_ids, v.similarities) with ordinality u (document_id, chunk_id, similarity, rank)
    ) n on n.document_id = w.document_id
    order by fused desc, 1
    limit least(greatest(coalesce(p_k, 10), 1), 100);
end $$;
revoke execute on function memory.search(text, halfvec, text, jsonb, int, text) from public;
grant execute on function memory.search(text, halfvec, text, jsonb, int, text) to service_role, authenticated;
