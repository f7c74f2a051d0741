-- letters_people.sql: who has each of the addresses $2 in tenant $1: its contact, and the client that the contact or the address belongs to.
select a.address, c.id as contact_id, c.first_name, c.last_name, c.email, c.phone_number, o.client_id, l.client_name
from unnest($2::text[]) a (address)
-- Once for each address, whatever the plan is.
cross join lateral (select tributary.match_contact($1, a.address) as id offset 0) m
left join public.contacts c on c.tenant_id = $1 and c.id = m.id
left join lateral tributary.client_of_contact($1, c.id, coalesce(c.email, a.address), c.company) o on true
left join public.client_intelligence l on l.tenant_id = $1 and l.id = o.client_id
where c.id is not null or l.id is not null
