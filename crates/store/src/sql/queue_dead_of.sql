-- queue_dead_of.sql: counts the items of each of the tenants $1 that were given up, up to $2, along the archive's index by tenant and state. Tenants without
-- any are left out.
select t.id, i.n
from unnest($1::text[]) t (id) cross join lateral (
    select count(*) as n from (
        select from {a} where {archived_of} = t.id and {archived_state} = 'dead' order by msg_id limit $2) some_dead) i
where i.n > 0
