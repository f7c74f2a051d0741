-- forget_tables.sql: every table with a tenant_id, and the tables among them that it refers to.
with ours as (
    select c.oid, format('%I.%I', n.nspname, c.relname) as name
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('public', 'tributary', 'memory') and c.relkind in ('r', 'p')
        and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and a.atttypid = 'uuid'::regtype and not a.attisdropped)
)
select o.name, coalesce(array_agg(t.name) filter (where t.name is not null), '{}') as refers_to
from ours o
left join pg_constraint k on k.conrelid = o.oid and k.contype = 'f'
left join ours t on t.oid = k.confrelid and t.oid <> o.oid
group by o.name order by o.name
