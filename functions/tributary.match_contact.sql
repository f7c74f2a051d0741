-- tributary.match_contact.sql: returns the contact of an address, or null if it has none.
-- It matches the exact e-mail address or number, else the last ten digits if only one contact has them. A contact to which a person linked the
-- address goes before one that was created with it.
create or replace function tributary.match_contact(p_tenant uuid, p_address text) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    wanted record;
    number text;
    found_id bigint;
    n bigint;
    n_added bigint;
begin
    select * into wanted from tributary.address_key(p_address);
    if wanted.key is null then
        return null;
    end if;
    if wanted.kind <> 'digits' then
        select k.contact_id into found_id from public.contact_keys k
        where k.tenant_id = p_tenant and k.kind = wanted.kind and k.key = wanted.key
        order by k.origin = 'added' desc, k.contact_id limit 1;
        if found or wanted.kind = 'email' then
            return found_id;
        end if;
    end if;
    number := ltrim(public.normalize_phone(p_address), '+');
    if length(number) < 10 then
        return null;
    end if;
    select coalesce(min(k.contact_id) filter (where k.origin = 'added'), min(k.contact_id)), count(*), count(*) filter (where k.origin = 'added')
    into found_id, n, n_added from (
        select k.contact_id, k.origin from public.contact_keys k
        where k.tenant_id = p_tenant and k.kind = 'digits' and k.key = right(number, 10)
        order by k.origin = 'added' desc limit 3
    ) k;
    return case when n = 1 or n_added = 1 then found_id end;
end $$;
revoke execute on function tributary.match_contact(uuid, text) from public;
grant execute on function tributary.match_contact(uuid, text) to service_role;
