-- chunks_of_documents.sql: the chunks of tenant $1's documents $2, and which have a vector in {v}.
select c.id, c.document_id, c.hash, c.occurrence,
    exists (select from {v} v where v.tenant_id = c.tenant_id and v.chunk_id = c.id) as has_vector
from public.document_chunks c
where c.tenant_id = $1 and c.document_id = any($2::uuid[])
