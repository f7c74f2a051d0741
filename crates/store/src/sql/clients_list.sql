-- clients_list.sql: up to $4 of the caller's clients by name, those that tributary.clients_found finds for $1 and $2, after client $3.
select c.id, c.client_name, c.updated_at,
    (select count(*) from public.client_intelligence m where m.tenant_id = c.tenant_id and m.client_id = c.id and m.identity ->> 'kind' = 'person')
        as n_people
from tributary.clients_found($1, $2) c
where $3::uuid is null or (lower(c.client_name), c.id) > (select lower(a.client_name), a.id from public.client_intelligence a where a.id = $3)
order by lower(c.client_name), c.id limit $4
