-- look.sql: what the caller's chunks are scored with by the words of query $1 (lists of at most $5 entries), and the codes by which those nearest to
-- vector $3 of model $2 are found, with the $6 nearest of those without a code, filtered by $4; and the model that the caller's vectors are of. One row.
with narrowed as materialized (select memory.filter_documents($4) as documents)
select k.*, n.documents, v.*,
    (select t.model from memory.tenants t where t.tenant_id = (select tributary.tenant())) as model
from narrowed n
cross join lateral memory.keyword_postings($1, n.documents, $5) k
cross join lateral memory.vector_side($2, $3, $4, n.documents, $6) v
