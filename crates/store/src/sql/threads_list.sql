-- threads_list.sql: the caller's Gmail conversations as lines of a list of documents, of source $1 or of all, before message $2 in the order of ids. A
-- conversation stands where its newest message does and has its id, so that nothing has to be grouped.
select d.id, d.source_id, s.name as source_name, 'thread:' || d.thread_id as external_id, 'gmail.thread' as document_type, d.title,
    left(d.text, 300) as text, d.n_chunks, d.embedding_model is not null as is_embedded, d.status, d.skip_reason, d.created_at, d.updated_at
from public.source_documents d join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
where d.document_type = 'gmail.message' and d.deleted_at is null and d.thread_id is not null
    and ($1::uuid is null or d.source_id = $1) and ($2::uuid is null or d.id < $2)
    and not exists (
        select from public.source_documents n
        where n.tenant_id = d.tenant_id and n.source_id = d.source_id and n.thread_id = d.thread_id and n.id > d.id
            and n.document_type = 'gmail.message' and n.deleted_at is null)
order by d.id desc limit $3
