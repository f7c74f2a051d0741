-- documents_forget.sql: removes documents of tenant $1's {of} $2, at most $3 and only as many as have up to $4 chunks together. If the first one has
-- more chunks than that, $4 of them go instead. Returns how many documents and how many such chunks.
with next as materialized (
    select id, sum(n_chunks) over (rows unbounded preceding) as total
    from (select id, n_chunks from public.source_documents where tenant_id = $1 and {of} limit $3) d
), gone as (
    delete from public.source_documents where tenant_id = $1 and id = any (array(select id from next where total <= $4)) returning 1
), large as materialized (
    select id from next where not exists (select from next where total <= $4) limit 1
), parts as (
    delete from public.document_chunks where tenant_id = $1 and id = any (array(
        select c.id from public.document_chunks c join large on c.document_id = large.id where c.tenant_id = $1 limit $4))
    returning 1
), smaller as (
    update public.source_documents d set n_chunks = greatest(d.n_chunks - $4, 0) from large where d.tenant_id = $1 and d.id = large.id
)
select (select count(*) from gone) as documents, (select count(*) from parts) as chunks, (select count(*) from next) = 0 as is_empty
