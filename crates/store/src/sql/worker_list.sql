-- worker_list.sql: every worker, and why it counts as stalled: it holds an item and has made no progress for twice its lane's
-- lease, or its lane has had work due for that long (lanes $1, since $2) and it claimed none meanwhile.
select p.id, p.version, w.host, w.pid, w.role, p.started,
    extract(epoch from p.expected_heartbeat_interval)::float8 as interval_secs,
    p.last_heartbeat, p.heartbeat_count::bigint, p.success_count::bigint, p.error_count::bigint, p.last_error_at, p.last_error_message, w.stopped_at, w.died_at,
    extract(epoch from clock_timestamp() - p.last_heartbeat)::float8 as silent_secs,
    (
        select string_agg(case
            when l.holding > 0 and l.progressed_at < now() - make_interval(secs => 2 * l.lease_secs)
                then format('%s holds %s and has made no progress since %s', l.lane, l.holding, to_char(l.progressed_at at time zone 'UTC', 'HH24:MI:SS'))
            when due.since < now() - make_interval(secs => 2 * l.lease_secs) and l.claimed_at < due.since
                then format('%s has had work due since %s and claims none', l.lane, to_char(due.since at time zone 'UTC', 'HH24:MI:SS'))
            end, '; ')
        from tributary.worker_lanes l
        left join unnest($1::text[], $2::timestamptz[]) as due (lane, since) on due.lane = l.lane
        where l.process_id = p.id
    ) as stalled_because
from ai.vectorizer_worker_process p
left join tributary.workers w on w.process_id = p.id
order by (w.stopped_at is not null), p.last_heartbeat desc
limit 200
