-- workers_silent.sql: the workers of the last day that were silent for ten heartbeats, neither stopped nor found dead before. Without a name of its
-- own (an earlier release) a worker is known by host and pid: it is left out while a living one has the same.
with named as (
    select p.id, coalesce(w.name, w.host || ':' || w.pid) as name, w.died_at is null as is_news,
        p.last_heartbeat < clock_timestamp() - 10 * p.expected_heartbeat_interval as is_silent
    from ai.vectorizer_worker_process p join tributary.workers w on w.process_id = p.id
    where p.last_heartbeat > clock_timestamp() - interval '1 day' and w.stopped_at is null
)
select id, name from named n where is_silent and is_news
    and not exists (select from named l where l.name = n.name and not l.is_silent and l.is_news)
