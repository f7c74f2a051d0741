-- dead_letters_count.sql: how many of tenant $1's activities failed for good and wait for a person.
select count(*) from public.activities a
where a.tenant_id = $1 and a.processing_status = 'failed'
    and a.id in (select f.original_activity_id from public.activity_failures f where f.tenant_id = $1)
