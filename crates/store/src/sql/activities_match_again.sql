-- activities_match_again.sql: links tenant $1's newest 10,000 unmatched activities to the contact of their address, or only to contact $2 if given.
-- Returns them.
with unmatched as materialized (
    select a.id, tributary.party(a.direction, a.metadata) as party from public.activities a
    where a.tenant_id = $1 and a.contact_id is null
    order by a.created_at desc limit 10000
), matched as materialized (
    select u.id, tributary.match_contact($1, u.party) as contact_id from unmatched u where u.party is not null
)
update public.activities a
set contact_id = m.contact_id
from matched m
where a.tenant_id = $1 and a.id = m.id and m.contact_id = coalesce($2, m.contact_id) and a.contact_id is null
returning a.id
