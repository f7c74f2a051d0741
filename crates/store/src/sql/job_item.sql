-- job_item.sql: where the message of tenant $1's job $2 is: in the queue, parked ($3: the tenant again), else the newest in the archive.
select msg_id, parked_id from (
    select 1 as place, msg_id, null::uuid as parked_id from pgmq.q_ingestion_queue where message ->> 'job_id' = $2 and message ->> 'tenant_id' = $1
    union all
    select 2, null, id from tributary.parked where tenant_id = $3 and queue = 'ingestion_queue' and message ->> 'job_id' = $2
    union all
    select 3, msg_id, null from pgmq.a_ingestion_queue where message ->> 'job_id' = $2 and message ->> 'tenant_id' = $1
) found order by place, msg_id desc limit 1
