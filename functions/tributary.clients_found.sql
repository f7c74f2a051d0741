-- tributary.clients_found.sql: returns the leading records of the caller's clients: those of which a record's name, domain or address contains p_text, and
-- of which a record has the name p_name; null leaves all. A record that was never matched is left out: of which client it is, is not known yet. It has no
-- settings of its own, so that it is part of the statement that calls it, which goes by the indexes.
create or replace function tributary.clients_found(p_text text, p_name text) returns setof public.client_intelligence
language sql stable
as $$
    select c.* from public.client_intelligence c
    where c.id = c.client_id and c.matched_marks > 0
        and (p_text is null or exists (
            select from public.client_intelligence m where m.tenant_id = c.tenant_id and m.client_id = c.id
                and (position(lower(p_text) in lower(m.client_name)) > 0 or exists (
                    select from unnest(m.keys) k (key)
                    where (starts_with(k.key, 'domain:') or starts_with(k.key, 'email:'))
                        and position(lower(p_text) in substr(k.key, strpos(k.key, ':') + 1)) > 0)))
        )
        and (p_name is null or exists (
            select from public.client_intelligence m where m.tenant_id = c.tenant_id and m.client_id = c.id and lower(m.client_name) = lower(p_name)))
$$;
revoke execute on function tributary.clients_found(text, text) from public;
grant execute on function tributary.clients_found(text, text) to service_role, authenticated;
