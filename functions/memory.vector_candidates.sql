-- memory.vector_candidates.sql: the caller's documents nearest to a vector, nearest first, each with its nearest chunk and that chunk's similarity.
-- One row. `p_documents`: only these (memory.filter_documents); `p_chunks`: how many chunks are taken.
--
-- `how` says how they were found: `exact` compares all vectors, `index` asks the tenant's own index, `keyword` means not at all: there is no
-- vector, or the tenant's vectors are of another model. Tenant and table are spliced as literals, so that partial indexes match.
create or replace function memory.vector_candidates(
    p_model text, p_embedding halfvec, p_filters jsonb default '{}', p_documents uuid[] default null, p_chunks int default 200,
    out document_ids uuid[], out chunk_ids uuid[], out similarities float8[], out how text
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    tenant constant uuid := tributary.tenant();
    condition constant text := memory.filter_condition(p_filters);
    known memory.tenants;
    nearest text;
    -- pgvector may be in any schema. With an owner's rights its operator is named, never searched for.
    vector_schema constant text := (
        select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector');
begin
    if tenant is null then
        raise exception 'search needs a caller with a tenant' using errcode = 'insufficient_privilege';
    end if;
    document_ids := '{}';
    chunk_ids := '{}';
    similarities := '{}';
    how := 'keyword';
    select * into known from memory.tenants t where t.tenant_id = tenant;
    if p_embedding is null or known.model is null or p_model is distinct from known.model then
        return;
    end if;
    if p_documents is not null or known.index_name is null then
        how := 'exact';
        -- `+ 0`: no index answers this order, so that none is tried.
        nearest := 'order by (v.embedding operator(%1$I.<#>) $1) + 0';
        nearest := case
            when p_documents is not null then 'and v.document_id = any($2) ' || nearest
            when condition <> '' then
                'and exists (select from public.source_documents d where d.tenant_id = %2$L and d.id = v.document_id %3$s) ' || nearest
            else nearest
        end;
    else
        how := 'index';
        perform set_config('hnsw.ef_search', '200', true), set_config('hnsw.iterative_scan', 'relaxed_order', true);
        nearest := 'order by v.embedding operator(%1$I.<#>) $1';
        if condition <> '' then
            -- A subplan, which stays behind the index; a join would be reordered before it.
            nearest := 'and (select count(*) from public.source_documents d where d.tenant_id = %2$L and d.id = v.document_id %3$s) = 1 ' || nearest;
        end if;
    end if;
    execute format(
        'with near as materialized (
             select v.chunk_id, v.document_id, v.embedding operator(%1$I.<#>) $1 as distance from memory.%4$I v
             where v.tenant_id = %2$L ' || nearest || ' limit %5$s),
         best as (
             select b.* from (select distinct on (document_id) * from near order by document_id, distance, chunk_id) b
             order by b.distance, b.document_id)
         select coalesce(array_agg(document_id), ''{}''), coalesce(array_agg(chunk_id), ''{}''), coalesce(array_agg(-distance), ''{}'') from best',
        vector_schema, tenant, condition, 'vectors_' || known.model, p_chunks)
    into document_ids, chunk_ids, similarities
    using p_embedding, p_documents;
end $$;
revoke execute on function memory.vector_candidates(text, halfvec, jsonb, uuid[], int) from public;
grant execute on function memory.vector_candidates(text, halfvec, jsonb, uuid[], int) to service_role, authenticated;
