-- memory.vector_side.sql: returns what the server needs to find the caller's chunks nearest to a vector, in one row.
-- `codes`: the codes that it searches in its own memory (memory.read_codes). The other arrays: the `p_chunks` nearest of the vectors that no code has yet,
-- nearest first; of all, where there is no code. `p_documents`: only chunks of these (memory.filter_documents).
--
-- `how` is the method: `index` is by codes, `exact` compares all vectors, `keyword` means that no vector is searched: there is no vector, or the tenant's
-- vectors are of another model.
--
-- While the memory moves to another model, vectors of that one are searched too, if nine tenths of the chunks have them: for a caller who can no longer
-- ask the old model.
create or replace function memory.vector_side(
    p_model text, p_embedding halfvec, p_filters jsonb default '{}', p_documents uuid[] default null, p_chunks int default 200,
    out codes bigint[], out numbers bigint[], out chunk_ids uuid[], out document_ids uuid[], out similarities float8[], out how text
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    tenant constant uuid := tributary.tenant();
    condition constant text := case when p_documents is null then memory.filter_condition(p_filters) else '' end;
    known memory.tenants;
    -- pgvector may be in any schema. This runs with its owner's rights, so the operator's schema is named instead of searched for.
    vector_schema constant text := (
        select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector');
begin
    if tenant is null then
        raise exception 'search needs a caller with a tenant' using errcode = 'insufficient_privilege';
    end if;
    codes := '{}';
    numbers := '{}';
    chunk_ids := '{}';
    document_ids := '{}';
    similarities := '{}';
    how := 'keyword';
    select * into known from memory.tenants t where t.tenant_id = tenant;
    if p_embedding is null or known.model is null then
        return;
    end if;
    if p_model is distinct from known.model and not exists (
        select from memory.moves m where m.tenant_id = tenant and m.to_model = p_model and m.state in ('embedding', 'indexing')
            and m.n_left * 10 <= greatest(known.n_chunks, m.n_embedded)
    ) then
        return;
    end if;
    select coalesce(array_agg(c.id order by c.id), '{}') into codes from memory.codes c where c.tenant_id = tenant and c.model = p_model;
    how := case when codes = '{}' then 'exact' else 'index' end;
    if how = 'index' and not exists (select from memory.fresh_vectors f where f.tenant_id = tenant and f.model = p_model) then
        return;
    end if;
    execute format(
        'with near as materialized (
             select v.chunk_id, v.document_id, v.embedding operator(%1$I.<#>) $1 as distance from %2$s
             where v.tenant_id = %3$L %4$s order by distance, v.chunk_id limit %5$s)
         select coalesce(array_agg(c.n order by v.distance, v.chunk_id), ''{}''), coalesce(array_agg(v.chunk_id order by v.distance, v.chunk_id), ''{}''),
             coalesce(array_agg(v.document_id order by v.distance, v.chunk_id), ''{}''),
             coalesce(array_agg(-v.distance order by v.distance, v.chunk_id), ''{}'')
         from near v join public.document_chunks c on c.tenant_id = %3$L and c.id = v.chunk_id',
        vector_schema,
        case when how = 'exact' then format('memory.%I v', 'vectors_' || p_model) else format(
            'memory.fresh_vectors f join memory.%1$I v on v.tenant_id = %2$L and v.chunk_id = f.chunk_id and f.tenant_id = %2$L and f.model = %3$L',
            'vectors_' || p_model, tenant, p_model) end,
        tenant,
        case
            when p_documents is not null then 'and v.document_id = any($2)'
            when condition <> '' then
                format('and exists (select from public.source_documents d where d.tenant_id = %L and d.id = v.document_id %s)', tenant, condition)
            else ''
        end,
        p_chunks)
    into numbers, chunk_ids, document_ids, similarities
    using p_embedding, p_documents;
end $$;
revoke execute on function memory.vector_side(text, halfvec, jsonb, uuid[], int) from public;
grant execute on function memory.vector_side(text, halfvec, jsonb, uuid[], int) to service_role, authenticated;
