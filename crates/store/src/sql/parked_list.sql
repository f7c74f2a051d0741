-- parked_list.sql: parked items of tenant $1 in queue $2, newest first, or just item $3; those before id $4; at most $5.
select id, reason, until, parked_at, message, coalesce((headers ->> 'enqueued_at')::timestamptz, parked_at) as enqueued_at,
    coalesce((headers ->> 'read_ct')::int, 0) - coalesce((headers ->> 'waits')::int, 0) as attempts,
    coalesce((headers ->> 'waits')::int, 0) as waits, headers ->> 'error' as error
from tributary.parked
where tenant_id = $1 and queue = $2 and ($3::uuid is null or id = $3) and ($4::uuid is null or id < $4)
order by id desc limit $5
