-- codes_vectors.sql: the vectors of tenant $1's chunks $2, with the chunks' numbers and documents; those that are gone are left out.
select c.n, c.id, c.document_id, v.embedding::vector::real[]
from {v} v join public.document_chunks c on c.tenant_id = v.tenant_id and c.id = v.chunk_id
where v.tenant_id = $1 and v.chunk_id = any ($2)
