-- memory.complete_candidates.sql: returns the caller's chunks of the numbers `p_numbers` (by keyword, best first, the first `p_limit` that match the filters)
-- and of the ids `p_chunks` (by vector), each once, with everything that fusion compares. `similarity` is null for a chunk without a vector.
-- Chunks that are gone are left out. `p_documents`: the numbers are known to be of these, so that no filter is needed (memory.filter_documents).
create or replace function memory.complete_candidates(
    p_model text, p_embedding halfvec, p_numbers bigint[], p_chunks uuid[], p_filters jsonb default '{}', p_documents uuid[] default null,
    p_limit int default 200
) returns table (n bigint, chunk_id uuid, document_id uuid, ordinal int, similarity float8)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    tenant constant uuid := tributary.tenant();
    condition constant text := case when p_documents is null then memory.filter_condition(p_filters) else '' end;
    vector_schema constant text := (
        select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector');
begin
    if tenant is null then
        raise exception 'search needs a caller with a tenant' using errcode = 'insufficient_privilege';
    end if;
    return query execute format(
        'select c.n, c.id, c.document_id, c.ordinal, %s
         from (
             (select c.n, c.id, c.document_id, c.ordinal
              from unnest($1) with ordinality k (n, nth) join public.document_chunks c on c.tenant_id = %2$L and c.n = k.n
              %3$s order by k.nth limit $4)
             union
             select c.n, c.id, c.document_id, c.ordinal
             from unnest($2) k (id) join public.document_chunks c on c.tenant_id = %2$L and c.id = k.id
         ) c',
        case when p_embedding is null then 'null::float8'
            else format('(select -(v.embedding operator(%1$I.<#>) $3) from memory.%2$I v where v.tenant_id = %3$L and v.chunk_id = c.id)',
                vector_schema, 'vectors_' || p_model, tenant) end,
        tenant,
        case when condition = '' then '' else format(
            'where exists (select from public.source_documents d where d.tenant_id = %L and d.id = c.document_id %s)', tenant, condition) end)
    using p_numbers, p_chunks, p_embedding, p_limit;
end $$;
revoke execute on function memory.complete_candidates(text, halfvec, bigint[], uuid[], jsonb, uuid[], int) from public;
grant execute on function memory.complete_candidates(text, halfvec, bigint[], uuid[], jsonb, uuid[], int) to service_role, authenticated;
