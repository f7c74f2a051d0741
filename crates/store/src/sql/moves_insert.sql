-- moves_insert.sql: vectors $3 of tenant $1's chunks $2, where the chunk is still there and nobody removes it.
insert into {v} (tenant_id, chunk_id, document_id, embedding)
select $1, c.id, c.document_id, r.embedding
from (
    select c.id, c.document_id from public.document_chunks c where c.tenant_id = $1 and c.id = any($2::uuid[])
    order by c.id for key share skip locked
) c
join unnest($2::uuid[], $3::halfvec[]) r (chunk_id, embedding) on r.chunk_id = c.id
order by c.id
on conflict (tenant_id, chunk_id) do nothing
