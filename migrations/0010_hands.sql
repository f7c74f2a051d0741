-- What an agent says of an activity adds to what is known of it, and whose device it is, its key says.

-- When it was claimed last: a lock's own time moves with every heartbeat.
alter table public.activities add column claimed_at timestamptz;

-- Agents go by the newest statistics: a thousand activities come and are done between two looks at a large table.
alter table public.activities set (autovacuum_analyze_scale_factor = 0.01, autovacuum_vacuum_scale_factor = 0.02);
