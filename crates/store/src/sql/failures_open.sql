-- failures_open.sql: the names of up to $3 records of source $2 that could not be read and nobody skipped, the latest first.
select external_id from public.sync_failures
where tenant_id = $1 and source_id = $2 and skipped_at is null
order by failed_at desc, external_id
limit $3
