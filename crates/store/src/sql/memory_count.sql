-- memory_count.sql: counts every tenant's chunks and stores the numbers that changed.
with counted as (
    select t.tenant_id, (select count(*) from public.document_chunks c where c.tenant_id = t.tenant_id) as n_chunks from memory.tenants t
), changed as (
    update memory.tenants t set n_chunks = c.n_chunks, maintained_at = now()
    from counted c where c.tenant_id = t.tenant_id and c.n_chunks <> t.n_chunks
)
select t.tenant_id, t.model, c.n_chunks, t.index_name, t.stats_chunks from memory.tenants t join counted c on c.tenant_id = t.tenant_id
