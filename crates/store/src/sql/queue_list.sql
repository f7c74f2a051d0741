-- queue_list.sql: items of tenant $2 (and those that name none when $3), newest first, in state $4 (null: all) and below id $5,
-- or just item $6. Parked ones are listed by parked_list.sql.
with items as (
    (select msg_id, read_ct, enqueued_at, vt, message, coalesce(headers, '{}') as headers,
        case when headers ? 'by' and vt > coalesce($1, now()) then 'working'
             when headers ? 'error' then 'failed'
             else 'waiting' end as state
    from {q}
    where (message ->> 'tenant_id' = $2 or ($3 and not message ? 'tenant_id'))
        and ($5::bigint is null or msg_id < $5) and ($6::bigint is null or msg_id = $6)
        and ($4::text is null
            or ($4 = 'working' and headers ? 'by' and vt > coalesce($1, now()))
            or ($4 = 'failed' and headers ? 'error' and not coalesce(headers ? 'by' and vt > coalesce($1, now()), false))
            or ($4 = 'waiting' and not coalesce(headers ? 'error', false)
                and not coalesce(headers ? 'by' and vt > coalesce($1, now()), false)))
    order by msg_id desc limit $7)
    union all
    (select msg_id, read_ct, enqueued_at, vt, message, coalesce(headers, '{}'), coalesce(headers ->> 'state', 'dead')
    from {a}
    where (message ->> 'tenant_id' = $2 or ($3 and not message ? 'tenant_id'))
        and ($5::bigint is null or msg_id < $5) and ($6::bigint is null or msg_id = $6)
        and ($4::text is null or coalesce(headers ->> 'state', 'dead') = $4)
    order by msg_id desc limit $7)
)
select msg_id, state, read_ct - coalesce((headers ->> 'waits')::int, 0) as attempts, coalesce((headers ->> 'waits')::int, 0) as waits,
    enqueued_at, vt as due_at, headers ->> 'by' as held_by, (headers ->> 'since')::timestamptz as held_since,
    headers ->> 'error' as error, (headers ->> 'error_at')::timestamptz as error_at, headers ->> 'reason' as reason,
    (headers ->> 'ended_at')::timestamptz as ended_at, message
from items order by msg_id desc limit $7
