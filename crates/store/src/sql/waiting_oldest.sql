-- waiting_oldest.sql: the oldest $2 of tenant $1's activities that wait for an agent. It reads that many unowned ones and that many of each person,
-- along the index of waiting activities, however many there are. Their content is read only for the result.
with waiting as materialized (
    (select a.id, a.created_at from public.activities a
     where a.tenant_id = $1 and a.processing_status = 'raw' and a.sales_id is null
     order by a.sales_id, a.created_at limit $2)
    union all
    select w.id, w.created_at from public.sales s cross join lateral (
        select a.id, a.created_at from public.activities a
        where a.tenant_id = $1 and a.processing_status = 'raw' and a.sales_id = s.id
        order by a.sales_id, a.created_at limit $2
    ) w where s.tenant_id = $1
), oldest as materialized (
    select w.id, w.created_at from waiting w order by w.created_at, w.id limit $2
)
select a.id, a.type, a.sales_id, coalesce(a.raw_data ->> 'source_type', '') as source_type, a.created_at
from oldest o join public.activities a on a.tenant_id = $1 and a.id = o.id
order by a.created_at, a.id
