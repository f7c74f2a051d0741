-- activities_new_and_raw.sql: tenant $1's raw activities of the last $3 seconds, among its newest 2,000. It runs every few seconds, so it reads few rows.
select id from (
    select id, processing_status from public.activities
    where tenant_id = $1 and created_at > coalesce($2, now()) - make_interval(secs => $3)
    order by created_at desc limit 2000
) newest
where processing_status = 'raw'
