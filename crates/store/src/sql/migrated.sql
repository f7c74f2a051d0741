-- migrated.sql: whether this role may use the schemas of the queues and of tracking, and has the queues of lanes $1.
select (select count(*) from pg_namespace n where n.nspname in ('ai', 'pgmq') and has_schema_privilege(n.oid, 'usage')) = 2
    and not exists (
        select from unnest($1::text[]) lane where not exists (
            select from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where n.nspname = 'pgmq' and c.relname = 'q_' || lane and has_table_privilege(c.oid, 'insert')))
