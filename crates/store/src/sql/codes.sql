-- codes.sql: the segments of codes of every tenant and model, oldest first, and how many of its vectors are in none yet. Those that
-- begin with the version $1 can be read.
select coalesce(f.tenant_id, c.tenant_id) as tenant_id, m.name as model, m.dim, coalesce(f.n_fresh, 0) as n_fresh,
    coalesce(c.ids, '{}') as ids, coalesce(c.sizes, '{}') as sizes, coalesce(c.is_readable, true) as is_readable,
    case when t.maintained_at > c.made_at then t.n_chunks end as n_chunks
from (select tenant_id, model, count(*) as n_fresh from memory.fresh_vectors group by tenant_id, model) f
full join (
    select tenant_id, model, array_agg(id order by id) as ids, array_agg(n_chunks order by id) as sizes,
        bool_and(substring(bytes for 4) = $1) as is_readable, max(made_at) as made_at
    from memory.codes group by tenant_id, model
) c on c.tenant_id = f.tenant_id and c.model = f.model
join memory.models m on m.name = coalesce(f.model, c.model)
left join memory.tenants t on t.tenant_id = coalesce(f.tenant_id, c.tenant_id)
