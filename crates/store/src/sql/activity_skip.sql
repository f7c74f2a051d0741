-- activity_skip.sql: ends tenant $1's activity $2, unless it is completed, in the name of $3, with error type $4, and removes
-- its dead letters. Returns how many it ended.
with skipped as (
    update public.activities a
    set processing_status = 'failed', metadata = a.metadata || jsonb_build_object('error',
        jsonb_build_object('timestamp', now(), 'type', $4::text, 'message', 'skipped by ' || $3::text))
    where a.tenant_id = $1 and a.id = $2 and a.processing_status <> 'completed'
    returning a.id
), dug_up as (
    delete from public.activity_failures f using skipped where f.tenant_id = $1 and f.original_activity_id = skipped.id
)
select count(*) from skipped
