-- memory.filter_documents.sql: returns the caller's documents that match the filters, if they have at most 5,000 chunks: so few are searched exactly.
-- Returns null without filters, and when more chunks match.
create or replace function memory.filter_documents(p_filters jsonb) returns uuid[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    condition constant text := memory.filter_condition(p_filters);
    documents uuid[];
    n_chunks bigint;
begin
    if condition = '' then
        return null;
    end if;
    execute format(
        'select coalesce(array_agg(id), ''{}''), coalesce(sum(n_chunks), 0) from (
             select d.id, d.n_chunks from public.source_documents d where d.tenant_id = %L and d.n_chunks > 0 %s limit 5001) d',
        tributary.tenant(), condition)
    into documents, n_chunks;
    return case when n_chunks <= 5000 then documents end;
end $$;
revoke execute on function memory.filter_documents(jsonb) from public;
grant execute on function memory.filter_documents(jsonb) to service_role, authenticated;
