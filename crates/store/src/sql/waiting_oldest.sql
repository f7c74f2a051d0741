-- waiting_oldest.sql: the oldest $2 of tenant $1's activities that wait for an agent. (Materialized, so that they are found by the index of what
-- waits, however much is done; and what they carry is read of those few alone.)
with raw as materialized (
    select a.id, a.created_at from public.activities a where a.tenant_id = $1 and a.processing_status = 'raw'
), oldest as materialized (
    select r.id, r.created_at from raw r order by r.created_at, r.id limit $2
)
select a.id, a.type, a.sales_id, coalesce(a.raw_data ->> 'source_type', '') as source_type, a.created_at
from oldest o join public.activities a on a.tenant_id = $1 and a.id = o.id
order by a.created_at, a.id
