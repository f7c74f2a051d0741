-- letters_files.sql: the files, of type $4, of the letters named $3 of tenant $1's source $2: those in the letter's thread that are named after it.
-- Each letter is looked up by its unique key (see documents_look.sql), also one that is deleted.
select w.name as letter, f.external_id, f.document_type
from unnest($3::text[]) w (name)
cross join lateral (
    select * from public.source_documents s where s.source_id = $2 and s.external_id = w.name offset 0
) m
join public.source_documents f on f.tenant_id = $1 and f.source_id = $2 and f.thread_id = m.thread_id
where m.tenant_id = $1 and f.document_type = $4 and f.deleted_at is null
    and starts_with(f.external_id, 'attachment:' || substr(w.name, length('message:') + 1) || '/')
