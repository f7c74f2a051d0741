-- documents_totals.sql: how many documents the caller has, and how many of them wait for vectors, up to $1 of each, along an index. Where there are more
-- documents, it is the number of the last count (memory_count.sql), once there is one.
select case when d.n < $1 then d.n else greatest(d.n, (select t.n_documents from memory.tenants t where t.tenant_id = (select tributary.tenant()))) end as documents,
    (select count(*) from (
        select from public.source_documents where embedding_model is null and n_chunks > 0 order by id limit $1) p) as pending
from (
    select count(*) as n from (
        select from public.source_documents where deleted_at is null order by updated_at desc limit $1) some_documents
) d
