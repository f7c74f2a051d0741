-- candidates.sql: the caller's documents that match query $1 by words, and those nearest to vector $3 of model $2, both filtered by $4. One row.
with narrowed as materialized (select memory.filter_documents($4) as documents)
select k.document_ids as keyword_documents, k.chunk_ids as keyword_chunks, k.scores as keyword_scores, k.terms,
    v.document_ids as vector_documents, v.chunk_ids as vector_chunks, v.similarities, v.how
from narrowed n
cross join lateral memory.keyword_candidates($1, $4, n.documents) k
cross join lateral memory.vector_candidates($2, $3, $4, n.documents) v
