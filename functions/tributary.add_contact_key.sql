-- tributary.add_contact_key.sql: writes the keys of a contact's address, including the last ten digits of a number.
-- A key that a person added stays `added` when the contact's own columns have the same address.
create or replace function tributary.add_contact_key(p_tenant uuid, p_contact bigint, p_address text, p_origin text) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
    insert into public.contact_keys (tenant_id, kind, key, contact_id, origin, address)
    select p_tenant, k.kind, k.key, p_contact, p_origin, p_address
    from (
        select a.kind, a.key from tributary.address_key(p_address) a
        union
        select 'digits', right(p.number, 10) from (select public.normalize_phone(p_address) as number) p
        where length(ltrim(p.number, '+')) >= 10 and (tributary.address_key(p_address)).kind in ('phone', 'digits')
    ) k
    where k.key is not null
    on conflict (tenant_id, kind, key, contact_id) do update set origin = excluded.origin where excluded.origin = 'added'
$$;
revoke execute on function tributary.add_contact_key(uuid, bigint, text, text) from public;
grant execute on function tributary.add_contact_key(uuid, bigint, text, text) to service_role;
