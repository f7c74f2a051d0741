-- client_addresses.sql: the addresses and domains of the caller's client $1, as letters have them: `ann@acme.test`, `@acme.test`. At most $2.
with owned as (
    select split_part(k.key, ':', 1) as kind, substr(k.key, strpos(k.key, ':') + 1) as value
    from public.client_intelligence c cross join lateral unnest(c.owns) k (key)
    where c.client_id = (select client_id from public.client_intelligence where id = $1)
)
select value from owned where kind = 'email'
union select '@' || value from owned where kind = 'domain'
union select lower(k.address) from tributary.client_contacts($1) o
    join public.contact_keys k on k.contact_id = o.contact_id and k.kind = 'email' and k.address is not null
limit $2
