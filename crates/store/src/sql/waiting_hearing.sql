-- waiting_hearing.sql: tenant $1's calls that are being heard, and how many of their pages are kept. Few are in hand at once.
select a.id as activity_id, f.n_pages, (
    select count(*) from public.file_pages p where p.tenant_id = f.tenant_id and p.sha256 = f.sha256) as n_heard
from public.activities a
join tributary.activity_recordings r on r.tenant_id = a.tenant_id and r.activity_id = a.id
join public.files f on f.tenant_id = r.tenant_id and f.sha256 = r.blob_key and f.state = 'reading'
where a.tenant_id = $1 and a.processing_status = 'processing' and a.raw_data ->> 'source_type' = 'url'
limit 200
