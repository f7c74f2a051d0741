-- search.sql: the caller's best $5 documents for query $1 (embedded as $2 by model $3), filtered by $4, in mode $6, each with its best chunk.
select f.document_id, f.chunk_id, f.score, f.keyword_rank, f.vector_rank, f.keyword_score, f.similarity, f.terms, f.how,
    d.title, d.document_type, d.source_id, s.name as source_name, d.external_id, coalesce(d.source_created_at, d.created_at) as at, c.text, c.ordinal
from memory.search($1, $2, $3, $4, $5, $6) f
join public.source_documents d on d.tenant_id = (select tributary.tenant()) and d.id = f.document_id
join public.document_chunks c on c.tenant_id = d.tenant_id and c.id = f.chunk_id
join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
order by f.score desc, f.document_id
