-- contacts_ensure.sql: makes contacts of the addresses $2 of tenants $1, owned by $3, where there are none; always in the same order.
select tributary.ensure_contact(w.tenant_id, w.address, w.sales_id)
from (
    select distinct on (g.tenant_id, k.key collate "C") g.tenant_id, k.key, g.address, g.sales_id
    from unnest($1::uuid[], $2::text[], $3::int8[]) g (tenant_id, address, sales_id), tributary.address_key(g.address) k
    where k.key is not null
    order by g.tenant_id, k.key collate "C"
    offset 0
) w
