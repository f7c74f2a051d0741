-- senders_unrecognised.sql: tenant $1's senders without a contact, by their newest 10,000 activities, the latest $2 first, each with its newest activity
-- and how many there are. Ignored ones are left out.
with unmatched as materialized (
    select a.id, a.created_at, tributary.party(a.direction, a.metadata) as party from public.activities a
    where a.tenant_id = $1 and a.contact_id is null
    order by a.created_at desc limit 10000
)
select u.party, count(*) as n, (array_agg(u.id order by u.created_at desc, u.id desc))[1] as newest_id
from unmatched u
where u.party <> '' and length(u.party) <= 1000 and not exists (
    select from tributary.ignored_senders i where i.tenant_id = $1 and i.address = u.party)
group by u.party
order by max(u.created_at) desc, u.party
limit $2
