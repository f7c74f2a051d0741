-- senders_unrecognised.sql: tenant $1's senders without a contact, the latest $2 first: each with its newest activity, how many it has (it stops counting
-- at $3), and how many senders there are. Ignored ones are left out. Those of the newest 10,000 activities are found by time. Where there are more
-- activities, one sender may have them all, so that 10,000 senders are found by hopping from one to the next along the index activities_sender_idx.
with recursive newest as materialized (
    select tributary.party(a.direction, a.metadata) collate "C" as party, a.created_at, a.id from public.activities a
    where a.tenant_id = $1 and a.contact_id is null
    order by a.created_at desc limit 10000
), older as materialized (
    -- A hop without the index would read the whole table, so there is none until it is built.
    select count(*) = 10000 and exists (
        select from pg_catalog.pg_index i where i.indexrelid = to_regclass('public.activities_sender_idx') and i.indisvalid) as are_hopped
    from newest
), hop as (
    (select tributary.party(a.direction, a.metadata) collate "C" as party, a.created_at, a.id, 1 as nth from public.activities a
    where (select are_hopped from older) and a.tenant_id = $1 and a.contact_id is null
        and octet_length(tributary.party(a.direction, a.metadata)) between 1 and 1000
    order by tributary.party(a.direction, a.metadata) collate "C" desc, a.created_at desc, a.id desc limit 1)
    union all
    select next.party, next.created_at, next.id, h.nth + 1 from hop h cross join lateral (
        select tributary.party(a.direction, a.metadata) collate "C" as party, a.created_at, a.id from public.activities a
        where a.tenant_id = $1 and a.contact_id is null and octet_length(tributary.party(a.direction, a.metadata)) between 1 and 1000
            and tributary.party(a.direction, a.metadata) collate "C" < h.party
        order by tributary.party(a.direction, a.metadata) collate "C" desc, a.created_at desc, a.id desc limit 1) next
    where h.nth < 10000
), senders as (
    select k.party, max(k.created_at) as newest_at, (array_agg(k.id order by k.created_at desc, k.id desc))[1] as newest_id, sum(k.n) as n
    from (select party, created_at, id, 1 as n from newest union all select party, created_at, id, 0 from hop) k
    where octet_length(k.party) between 1 and 1000
        and not exists (select from tributary.ignored_senders i where i.tenant_id = $1 and i.address = k.party)
    group by k.party
), latest as (
    select s.*, count(*) over () as n_senders from senders s order by s.newest_at desc, s.party limit $2
)
select l.party, l.newest_id, l.n_senders, case when o.are_hopped then (
        select count(*) from (
            select from public.activities a
            where a.tenant_id = $1 and a.contact_id is null and octet_length(tributary.party(a.direction, a.metadata)) between 1 and 1000
                and tributary.party(a.direction, a.metadata) collate "C" = l.party
            limit $3) counted)
    else least(l.n, $3) end as n
from latest l cross join older o
order by l.newest_at desc, l.party
