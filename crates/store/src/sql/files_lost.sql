-- files_lost.sql: at most $3 documents whose file is being read, unchanged for $2 seconds, of which no queue, no dead letter and no parked
-- item speaks.
select d.tenant_id, d.id
from public.source_documents d
where d.status in ('pending', 'classifying', 'transcribing', 'extracting') and d.blob_key is not null and d.deleted_at is null
    and d.updated_at < coalesce($1, now()) - make_interval(secs => $2)
    and not exists (select from pgmq.q_document_queue q where q.message ->> 'document_id' = d.id::text)
    and not exists (select from pgmq.q_recognise q where q.message ->> 'document_id' = d.id::text)
    and not exists (select from pgmq.a_document_queue a where a.message ->> 'document_id' = d.id::text and a.headers ->> 'state' = 'dead')
    and not exists (select from pgmq.a_recognise a where a.message ->> 'document_id' = d.id::text and a.headers ->> 'state' = 'dead')
    and not exists (select from tributary.parked p where p.queue in ('document_queue', 'recognise') and p.message ->> 'document_id' = d.id::text)
order by d.updated_at
limit $3
