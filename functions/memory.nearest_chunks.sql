-- memory.nearest_chunks.sql: returns the caller's `p_chunks` chunks nearest to a vector, nearest first, with their similarities, in one row.
-- `p_documents`: only chunks of these (memory.filter_documents).
--
-- `how` is the method: `exact` compares all vectors, `keyword` means that no vector was searched: there is no vector, or the tenant's vectors are of
-- another model.
--
-- While the memory moves to another model, vectors of that one are searched too, if nine tenths of the chunks have them: for a caller who can no longer
-- ask the old model.
create or replace function memory.nearest_chunks(
    p_model text, p_embedding halfvec, p_filters jsonb default '{}', p_documents uuid[] default null, p_chunks int default 200,
    out chunk_ids uuid[], out document_ids uuid[], out similarities float8[], out how text
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    tenant constant uuid := tributary.tenant();
    condition constant text := memory.filter_condition(p_filters);
    known memory.tenants;
    nearest text;
    -- pgvector may be in any schema. This runs with its owner's rights, so the operator's schema is named instead of searched for.
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
    if p_embedding is null or known.model is null then
        return;
    end if;
    if p_model is distinct from known.model then
        if not exists (
            select from memory.moves m where m.tenant_id = tenant and m.to_model = p_model and m.state in ('embedding', 'indexing')
                and m.n_left * 10 <= greatest(known.n_chunks, m.n_embedded)
        ) then
            return;
        end if;
    end if;
    how := 'exact';
    -- `+ 0` prevents the use of an index, which an earlier release may have left: it would be approximate.
    nearest := case
        when p_documents is not null then 'and v.document_id = any($2) '
        when condition <> '' then 'and exists (select from public.source_documents d where d.tenant_id = %2$L and d.id = v.document_id %3$s) '
        else ''
    end || 'order by (v.embedding operator(%1$I.<#>) $1) + 0';
    execute format(
        'with near as materialized (
             select v.chunk_id, v.document_id, v.embedding operator(%1$I.<#>) $1 as distance from memory.%4$I v
             where v.tenant_id = %2$L ' || nearest || ' limit %5$s),
         sorted as (
             select * from near order by distance, chunk_id)
         select coalesce(array_agg(chunk_id), ''{}''), coalesce(array_agg(document_id), ''{}''), coalesce(array_agg(-distance), ''{}'') from sorted',
        vector_schema, tenant, condition, 'vectors_' || p_model, p_chunks)
    into chunk_ids, document_ids, similarities
    using p_embedding, p_documents;
end $$;
revoke execute on function memory.nearest_chunks(text, halfvec, jsonb, uuid[], int) from public;
grant execute on function memory.nearest_chunks(text, halfvec, jsonb, uuid[], int) to service_role, authenticated;
