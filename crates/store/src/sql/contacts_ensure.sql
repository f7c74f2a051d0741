-- contacts_ensure.sql: creates contacts for the addresses $2 of tenants $1, owned by $3 while that person is there, where there are none, in the
-- order of the locks that `ensure_contact` takes.
select tributary.ensure_contact(w.tenant_id, w.address, (select s.id from public.sales s where s.tenant_id = w.tenant_id and s.id = w.sales_id))
from (
    select distinct on (g.tenant_id, k.lock collate "C") g.tenant_id, k.lock, g.address, g.sales_id
    from unnest($1::uuid[], $2::text[], $3::int8[]) g (tenant_id, address, sales_id),
        lateral (select case when a.kind = 'email' then a.key else right(a.key, 10) end as lock from tributary.address_key(g.address) a) k
    where k.lock is not null
    order by g.tenant_id, k.lock collate "C", g.address like '+%' desc
    offset 0
) w
