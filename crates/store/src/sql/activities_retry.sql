-- activities_retry.sql: puts those of tenant $1's activities $2 that failed back to raw, as if they had never failed. Returns them.
update public.activities a
set processing_status = 'raw', metadata = a.metadata - 'error' - 'recovery_count' - 'retry_count'
where a.tenant_id = $1 and a.id = any($2) and a.processing_status = 'failed'
returning a.id
