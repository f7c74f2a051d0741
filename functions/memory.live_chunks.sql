-- memory.live_chunks.sql: returns those of the numbers `p_numbers` that are the caller's chunks, and whose documents match the filters.
create or replace function memory.live_chunks(p_numbers bigint[], p_filters jsonb default '{}') returns bigint[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    tenant constant uuid := tributary.tenant();
    condition constant text := memory.filter_condition(p_filters);
    live bigint[];
begin
    if condition = '' then
        select coalesce(array_agg(c.n), '{}') into live
        from unnest(p_numbers) k (n) join public.document_chunks c on c.tenant_id = tenant and c.n = k.n;
    else
        execute format(
            'select coalesce(array_agg(c.n), ''{}'') from unnest($1) k (n) join public.document_chunks c on c.tenant_id = %1$L and c.n = k.n
             where exists (select from public.source_documents d where d.tenant_id = %1$L and d.id = c.document_id %2$s)',
            tenant, condition)
        into live using p_numbers;
    end if;
    return live;
end $$;
revoke execute on function memory.live_chunks(bigint[], jsonb) from public;
grant execute on function memory.live_chunks(bigint[], jsonb) to service_role, authenticated;
