-- queue_list.sql: items of tenant $2 (and those that name none when $3), newest first, in state $4 (null: all) and below id $5,
-- or just item $6. Parked ones are listed by parked_list.sql.
-- It looks at the newest of the queue, of every tenant, and at the first of the tenant's own that are due or will be, by the index on (share, vt).
-- So a tenant with fewer than 2,000 due items sees all of them, one with more sees the newest, and no queue is read whole.
with named as (
    select $2::text as id union all select '' where $3
), shares as (
    select (hashtext(n.id)::bigint & 2147483647) + h.base as share from named n, (values (0::bigint), (4294967296)) h (base)
), candidates as (
    select $6::bigint as msg_id where $6::bigint is not null
    union
    (select msg_id from {q} where $6::bigint is null and msg_id < coalesce($5::bigint, 9223372036854775807) order by msg_id desc limit 2000)
    union
    select i.msg_id from shares s cross join lateral (
        select msg_id from {q} where $6::bigint is null and {share} = s.share and vt <= coalesce($1, now()) order by vt limit 2000) i
    union
    select i.msg_id from shares s cross join lateral (
        select msg_id from {q} where $6::bigint is null and {share} = s.share and vt > coalesce($1, now()) order by vt limit 2000) i
), items as (
    (select msg_id, read_ct, enqueued_at, vt, message, coalesce(headers, '{}') as headers,
        case when headers ? 'by' and vt > coalesce($1, now()) then 'working'
             when headers ? 'error' then 'failed'
             else 'waiting' end as state
    from {q}
    where msg_id = any (array(select c.msg_id from candidates c)) and msg_id < coalesce($5::bigint, 9223372036854775807)
        and coalesce(message ->> 'tenant_id', '') = any (array(select id from named))
        and ($4::text is null
            or ($4 = 'working' and headers ? 'by' and vt > coalesce($1, now()))
            or ($4 = 'failed' and headers ? 'error' and not coalesce(headers ? 'by' and vt > coalesce($1, now()), false))
            or ($4 = 'waiting' and not coalesce(headers ? 'error', false)
                and not coalesce(headers ? 'by' and vt > coalesce($1, now()), false)))
    order by msg_id desc limit $7)
    union all
    (select i.msg_id, i.read_ct, i.enqueued_at, i.vt, i.message, coalesce(i.headers, '{}'), e.state
    from named n cross join (values ('dead'), ('skipped'), ('cancelled')) e (state)
    cross join lateral (
        select * from {a}
        where {archived_of} = n.id and {archived_state} = e.state
            and msg_id < coalesce($5::bigint, 9223372036854775807) and ($6::bigint is null or msg_id = $6)
        order by msg_id desc limit $7) i
    where $4::text is null or e.state = $4
    order by i.msg_id desc limit $7)
)
select msg_id, state, read_ct - coalesce((headers ->> 'waits')::int, 0) as attempts, coalesce((headers ->> 'waits')::int, 0) as waits,
    enqueued_at, vt as due_at, headers ->> 'by' as held_by, (headers ->> 'since')::timestamptz as held_since,
    headers ->> 'error' as error, (headers ->> 'error_at')::timestamptz as error_at, headers ->> 'reason' as reason,
    (headers ->> 'ended_at')::timestamptz as ended_at, message
from items order by msg_id desc limit $7
