-- tributary.client_of_contact.sql: returns the client that a contact belongs to: as a person decided, else by its e-mail address, its domain or its
-- company's name, where these are one client's alone. Null: it belongs to none. `matched_by` says why.
create or replace function tributary.client_of_contact(p_tenant uuid, p_contact bigint, p_email text, p_company text)
returns table (client_id uuid, matched_by jsonb)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with said as (
        select d.kind, d.other from public.client_decisions d where d.tenant_id = p_tenant and d.record = 'contact/' || p_contact
    ), keys as (
        select * from (values
            (1, 'email', lower(trim(p_email))),
            (2, 'domain', tributary.client_domain(p_email)),
            (3, 'name', tributary.client_name_key(p_company))) k (place, kind, value)
        where value is not null
    )
    select found.client_id, found.matched_by from (
        select c.client_id, jsonb_build_object('by', 'person') as matched_by, 0 as place
        from said s join public.client_intelligence c on c.tenant_id = p_tenant and c.keys @> array['ref:' || s.other]
            and 'ref:' || s.other = 'ref:' || coalesce(c.source_id || '/' || c.external_id, 'hand/' || c.id)
        where s.kind = 'merge'
        union all
        select c.id, jsonb_build_object('by', k.kind, 'key', k.value), k.place
        from keys k join public.client_intelligence c on c.tenant_id = p_tenant and c.owns @> array[k.kind || ':' || k.value] and c.id = c.client_id
        where not exists (select from said)
    ) found
    order by found.place, found.client_id limit 1
$$;
revoke execute on function tributary.client_of_contact(uuid, bigint, text, text) from public;
grant execute on function tributary.client_of_contact(uuid, bigint, text, text) to service_role;
