-- workers_ended.sql: the workers of the last day that missed a heartbeat and whose lock (seed $1) nobody holds, because their session has ended.
-- Not those that stopped, or that were found dead before.
with late as materialized (
    select p.id, w.name
    from ai.vectorizer_worker_process p join tributary.workers w on w.process_id = p.id
    where p.last_heartbeat > clock_timestamp() - interval '1 day'
        -- Long intervals are no excuse: the session speaks for the process, a heartbeat only confirms it.
        and p.last_heartbeat < clock_timestamp() - least(p.expected_heartbeat_interval, interval '5 seconds') - interval '1 second'
        and w.name is not null and w.stopped_at is null and w.died_at is null
)
select id, name from late where pg_try_advisory_xact_lock_shared(hashtextextended(name, $1))
