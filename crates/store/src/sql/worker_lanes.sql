-- worker_lanes.sql: writes what each lane of worker $1 holds and has done.
insert into tributary.worker_lanes (process_id, lane, lease_secs, holding, progressed_at, claimed_at, done, failed, waited, stale)
select $1, lane, lease_secs, holding, clock_timestamp() - make_interval(secs => progressed), clock_timestamp() - make_interval(secs => claimed),
    done, failed, waited, stale
from unnest($2::text[], $3::int[], $4::int[], $5::float8[], $6::float8[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
    as l (lane, lease_secs, holding, progressed, claimed, done, failed, waited, stale)
on conflict (process_id, lane) do update set
    lease_secs = excluded.lease_secs, holding = excluded.holding, progressed_at = excluded.progressed_at,
    claimed_at = excluded.claimed_at, done = excluded.done, failed = excluded.failed, waited = excluded.waited, stale = excluded.stale
