-- files_progress.sql: how far the files of the caller's documents $1 are read.
select d.id, f.kind, f.n_pages, f.state = 'recognising' as is_recognising,
    (select count(*) from public.file_pages p
        where p.tenant_id = f.tenant_id and p.sha256 = f.sha256 and (f.state <> 'recognising' or p.trouble is null)) as n_read
from public.source_documents d join public.files f on f.tenant_id = d.tenant_id and f.sha256 = d.blob_key
where d.id = any($1) and d.deleted_at is null
