-- tributary.client_contacts.sql: returns the contacts of one of the caller's clients, by the rules of client_of_contact.
create or replace function tributary.client_contacts(p_client uuid) returns table (contact_id bigint, matched_by jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    of_tenant uuid := tributary.tenant();
    leader record;
begin
    select c.client_id, c.owns into leader from public.client_intelligence c where c.tenant_id = of_tenant and c.id = p_client;
    return query
    with keys as (
        select split_part(k.key, ':', 1) as kind, substr(k.key, strpos(k.key, ':') + 1) as value from unnest(leader.owns) k (key)
    ), possible as (
        select c.id from public.contacts c join keys k on k.kind = 'email' and lower(trim(c.email)) = k.value where c.tenant_id = of_tenant
        union select c.id from public.contacts c join keys k on k.kind = 'domain' and tributary.client_domain(c.email) = k.value where c.tenant_id = of_tenant
        union select c.id from public.contacts c join keys k on k.kind = 'name' and tributary.client_name_key(c.company) = k.value where c.tenant_id = of_tenant
        union select substr(d.record, 9)::bigint from public.client_decisions d
            join public.client_intelligence m on m.tenant_id = of_tenant and m.client_id = leader.client_id and m.keys @> array['ref:' || d.other]
            where d.tenant_id = of_tenant and d.kind = 'merge' and d.record ~ '^contact/[0-9]{1,18}$'
    )
    select c.id, o.matched_by from possible p
    join public.contacts c on c.tenant_id = of_tenant and c.id = p.id
    cross join lateral tributary.client_of_contact(of_tenant, c.id, c.email, c.company) o
    where o.client_id = leader.client_id;
end $$;
revoke execute on function tributary.client_contacts(uuid) from public;
grant execute on function tributary.client_contacts(uuid) to service_role, authenticated;
