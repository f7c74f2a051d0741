-- memory_count.sql: counts chunks and documents of the tenants whose documents have changed since their last count, stores the numbers, and returns all
-- tenants. A large memory is counted less often, a second later for every 1,000 chunks; the removal of documents shows within an hour.
with due as materialized (
    select t.tenant_id from memory.tenants t
    where t.maintained_at is null or (t.maintained_at < now() - make_interval(secs => greatest(t.n_chunks - 10000, 0) / 1000.0)
        and (t.maintained_at < now() - interval '1 hour' or exists (
            select from public.source_documents d where d.tenant_id = t.tenant_id and d.updated_at >= t.maintained_at - interval '1 minute')))
), counted as materialized (
    select t.tenant_id, (select count(*) from public.document_chunks c where c.tenant_id = t.tenant_id) as n_chunks,
        (select count(*) from public.source_documents d where d.tenant_id = t.tenant_id and d.deleted_at is null) as n_documents
    from due t
), changed as (
    update memory.tenants t set n_chunks = c.n_chunks, n_documents = c.n_documents, maintained_at = now()
    from counted c where c.tenant_id = t.tenant_id
)
select t.tenant_id, t.model, coalesce(c.n_chunks, t.n_chunks) as n_chunks, t.index_name
from memory.tenants t left join counted c on c.tenant_id = t.tenant_id
