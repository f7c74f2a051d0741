-- languages_next.sql: locks tenant $1's next documents after $2 that have chunks, with the first $4 characters of their texts and their languages: as many
-- as have about $3 chunks, one at least.
with next as (
    select d.id, d.n_chunks from public.source_documents d
    where d.tenant_id = $1 and d.id > $2 and d.n_chunks > 0 and d.deleted_at is null order by d.id limit $3
), chosen as (
    select c.id from (select n.id, sum(n.n_chunks) over (order by n.id) - n.n_chunks as n_before from next n) c where c.n_before < $3
)
select d.id, coalesce(left(d.text, $4), '') as beginning, d.lang::text as lang from public.source_documents d
where d.tenant_id = $1 and d.id = any (array(select id from chosen)) order by d.id for update
