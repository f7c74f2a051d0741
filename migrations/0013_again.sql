-- Syncs that were asked for while another one of the same source was under way: a list of {id, kind, by, items}, at most one of the whole
-- source and one of single records. When the job ends, the first of them becomes a job and takes the rest with it (tributary.run_again).
alter table public.sync_jobs add column asked_again jsonb;

-- Schedules that were made together fire together; from now on each has its own second.
update tributary.schedules set next_run_at = next_run_at + make_interval(secs => abs(hashtext(name)) % least(30, extract(epoch from every)::int));
