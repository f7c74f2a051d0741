-- letters_forget.sql: marks up to $3 letters of tenant $1's contact $2 as forgotten, before their documents go: no sync brings them back. Rows are locked
-- in the order of their ids, as pages do.
insert into public.processed_messages as p (tenant_id, source_id, message_id, skip_reason, received_at)
select $1, d.source_id, substr(d.external_id, length('message:') + 1), 'forgotten', coalesce(d.source_created_at, d.created_at)
from public.source_documents d
where d.tenant_id = $1 and d.contact_id = $2::bigint and d.document_type like '%.message' and starts_with(d.external_id, 'message:')
    and not exists (select from public.processed_messages m where m.source_id = d.source_id
        and m.message_id = substr(d.external_id, length('message:') + 1) and m.skip_reason = 'forgotten' and m.let_in_at is null)
order by 2, 3 limit $3
on conflict (source_id, message_id) do update
set skip_reason = 'forgotten', sender = null, subject = null, let_in_at = null, let_in_by = null
