-- moves_label.sql: labels tenant $1's documents $2, which are locked, with model $3, if all their chunks have a vector in {v}. The others have no label
-- from then on. Returns all of them, in the order of their ids.
with next as materialized (
    select d.id, d.embedding_model is not null as is_labelled from public.source_documents d
    where d.tenant_id = $1 and d.id = any ($2)
), looked as materialized (
    select n.*, exists (
        select from public.document_chunks c where c.tenant_id = $1 and c.document_id = n.id
            and (select count(*) from {v} v where v.tenant_id = c.tenant_id and v.chunk_id = c.id) = 0) as lacks
    from next n
), changed as (
    update public.source_documents d
    set embedding_model = case when not l.lacks then $3 end, embedding_text_sha256 = case when not l.lacks then d.content_sha256 end
    from looked l where d.tenant_id = $1 and d.id = l.id and (l.is_labelled or not l.lacks)
)
select l.id, l.lacks and l.is_labelled as is_pending from looked l order by l.id
