-- segments_remove.sql: removes tenant $1's segments $2 with their postings.
with gone as (delete from memory.postings where tenant_id = $1 and segment_id = any ($2) returning 1)
delete from memory.segments where tenant_id = $1 and id = any ($2) and (select count(*) from gone) >= 0
