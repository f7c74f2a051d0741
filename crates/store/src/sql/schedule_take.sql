-- schedule_take.sql: takes one due schedule and moves it past now, however many ticks were missed. $1: a fixed clock.
update tributary.schedules s
set last_run_at = coalesce($1, now()),
    next_run_at = s.next_run_at
        + s.every * (1 + floor(extract(epoch from coalesce($1, now()) - s.next_run_at) / extract(epoch from s.every)))
from (
    select name from tributary.schedules where next_run_at <= coalesce($1, now())
    order by next_run_at limit 1
    for update skip locked
) due
where s.name = due.name
returning s.name, s.lane, s.message, extract(epoch from s.every)::float8 as every_secs, s.next_run_at, s.last_run_at,
    s.last_error, s.last_error_at
