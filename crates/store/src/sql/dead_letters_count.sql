-- dead_letters_count.sql: how many of tenant $1's activities failed for good and wait for a person, up to $2. A letter goes when its activity is tried again,
-- so $2 letters are enough to say "at least". Activities are looked up one by one, by their key (`offset 0`): another plan would read all of a tenant's.
with letters as materialized (
    select original_activity_id as id from public.activity_failures where tenant_id = $1 order by original_activity_id limit $2
)
select case when (select count(*) from letters) >= $2 then $2 else (
    select count(distinct l.id) from letters l where exists (
        select from public.activities a where a.tenant_id = $1 and a.id = l.id and a.processing_status = 'failed' offset 0)) end
