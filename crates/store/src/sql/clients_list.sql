-- clients_list.sql: up to $4 of the caller's clients by name: those of which a record's name, domain or address contains $1, those of which a record has
-- the name $2, those after client $3.
select c.id, c.client_name, c.updated_at,
    (select count(*) from public.client_intelligence m where m.tenant_id = c.tenant_id and m.client_id = c.id and m.identity ->> 'kind' = 'person')
        as n_people
from public.client_intelligence c
where c.id = c.client_id
    and ($1::text is null or exists (
        select from public.client_intelligence m where m.tenant_id = c.tenant_id and m.client_id = c.id
            and (position(lower($1) in lower(m.client_name)) > 0 or exists (
                select from unnest(m.keys) k (key)
                where (starts_with(k.key, 'domain:') or starts_with(k.key, 'email:')) and position(lower($1) in substr(k.key, strpos(k.key, ':') + 1)) > 0))))
    and ($2::text is null or exists (
        select from public.client_intelligence m where m.tenant_id = c.tenant_id and m.client_id = c.id and lower(m.client_name) = lower($2)))
    and ($3::uuid is null or (lower(c.client_name), c.id) > (select lower(a.client_name), a.id from public.client_intelligence a where a.id = $3))
order by lower(c.client_name), c.id limit $4
