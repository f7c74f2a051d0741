-- segments.sql: the segments of every tenant, oldest first, and how many of its chunks are in none yet.
select t.tenant_id, case when t.maintained_at > s.made_at then t.n_chunks end as n_chunks,
    coalesce(f.n_fresh, 0) as n_fresh, coalesce(s.ids, '{}') as ids, coalesce(s.sizes, '{}') as sizes
from memory.tenants t
left join (select tenant_id, count(*) as n_fresh from memory.fresh_chunks group by tenant_id) f on f.tenant_id = t.tenant_id
left join (
    select tenant_id, array_agg(id order by id) as ids, array_agg(n_chunks order by id) as sizes, max(made_at) as made_at
    from memory.segments group by tenant_id
) s on s.tenant_id = t.tenant_id
where f.n_fresh > 0 or s.ids is not null
