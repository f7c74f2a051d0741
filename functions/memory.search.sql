-- memory.search.sql: runs a whole search in one call, for psql and other programs: keyword and vector candidates of the caller's tenant, both scores
-- stretched to 0…1, and their weighted sum. The server does the same in Rust (engine::memory::recall), and then also looks for phrases.
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
    share constant float8 := case p_mode when 'vector' then 1 when 'keyword' then 0
        else coalesce((select m.weight from memory.models m where m.name = p_model), 0) end;
begin
    if p_mode not in ('hybrid', 'keyword', 'vector') then
        raise exception 'mode must be hybrid, keyword or vector' using errcode = 'invalid_parameter_value';
    end if;
    return query
    with k as materialized (
        select s.n, s.score from memory.keyword_scores(case when p_mode <> 'vector' then p_query end, documents) s
    ), v as materialized (
        select * from memory.nearest_chunks(p_model, case when p_mode <> 'keyword' then p_embedding end, p_filters, documents)
    ), chunks as materialized (
        select c.*, coalesce(k.score, 0) as by_keyword
        from v, memory.complete_candidates(
            p_model, case when v.how <> 'keyword' then p_embedding end,
            (select array_agg(b.n order by b.score desc, b.n) from (select * from k order by k.score desc, k.n limit 2000) b),
            v.chunk_ids, p_filters, documents) c
        left join k on k.n = c.n
    ), ranges as (
        select min(c.by_keyword) as least_k, nullif(max(c.by_keyword) - min(c.by_keyword), 0) as width_k,
            min(c.similarity) as least_s, nullif(max(c.similarity) - min(c.similarity), 0) as width_s from chunks c
    ), fused as (
        select distinct on (c.document_id) c.document_id, c.chunk_id, c.by_keyword, c.similarity,
            share * coalesce((c.similarity - r.least_s) / r.width_s, (c.similarity > 0)::int, 0)
                + (1 - share) * coalesce((c.by_keyword - r.least_k) / r.width_k, (c.by_keyword > 0)::int)
                + case when c.ordinal = 0 and share < 1 then 0.03 else 0 end as fused
        from chunks c, ranges r order by c.document_id, 5 desc, c.chunk_id
    ), keyword_ranks as (
        select b.document_id, rank() over (order by b.best desc, b.document_id) as place
        from (select c.document_id, max(c.by_keyword) as best from chunks c where c.by_keyword > 0 group by c.document_id) b
    ), vector_ranks as (
        select b.document_id, rank() over (order by b.best desc, b.document_id) as place
        from (select c.document_id, max(c.similarity) as best from chunks c where c.similarity is not null group by c.document_id) b
    )
    select f.document_id, f.chunk_id, f.fused, kr.place::int, vr.place::int, f.by_keyword, f.similarity,
        (select w.lexemes from memory.keyword_postings(p_query) w), (select v.how from v)
    from fused f left join keyword_ranks kr on kr.document_id = f.document_id left join vector_ranks vr on vr.document_id = f.document_id
    order by f.fused desc, f.document_id
    limit least(greatest(coalesce(p_k, 10), 1), 100);
end $$;
revoke execute on function memory.search(text, halfvec, text, jsonb, int, text) from public;
grant execute on function memory.search(text, halfvec, text, jsonb, int, text) to service_role, authenticated;
