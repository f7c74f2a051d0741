-- mcp_calls_insert.sql: writes calls, one row per element of the arrays. Those of a key that is gone meanwhile are left out.
insert into tributary.mcp_calls (id, tenant_id, key_id, tool, outcome, duration_ms, n_hits, arguments, at)
select c.id, c.tenant_id, c.key_id, c.tool, c.outcome, c.duration_ms, c.n_hits, c.arguments, c.at
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::int[], $7::int[], $8::jsonb[], $9::timestamptz[])
    as c (id, tenant_id, key_id, tool, outcome, duration_ms, n_hits, arguments, at)
join tributary.api_keys k on k.tenant_id = c.tenant_id and k.id = c.key_id
on conflict do nothing
