-- tributary.ensure_contact.sql: returns the contact of an address and creates it if there is none. Concurrent calls create one contact per address.
-- A caller that needs several contacts asks for them in the order of their keys, so that two callers never deadlock.
create or replace function tributary.ensure_contact(p_tenant uuid, p_address text, p_sales_id bigint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    found_id bigint := tributary.match_contact(p_tenant, p_address);
    wanted record;
    is_email boolean;
begin
    if found_id is not null then
        return found_id;
    end if;
    select * into wanted from tributary.address_key(p_address);
    if wanted.key is null then
        return null;
    end if;
    -- No contact is created for programs that cannot be answered.
    if wanted.kind = 'email'
        and wanted.key ~ '^(no[-_.]?reply|do[-_.]?not[-_.]?reply|mailer-daemon|postmaster|bounces?|srs[01])([-+=._@])'
    then
        return null;
    end if;
    -- Digits that contacts share already match none of them; another contact would not change that.
    if wanted.kind = 'digits' and exists (
        select from public.contact_keys k where k.tenant_id = p_tenant and k.kind = 'digits' and k.key = wanted.key)
    then
        return null;
    end if;
    -- A number with and without its country code is the same number: both take the same lock.
    perform pg_advisory_xact_lock(hashtextextended(
        p_tenant::text || case when wanted.kind = 'email' then wanted.key else right(wanted.key, 10) end, 0));
    found_id := tributary.match_contact(p_tenant, p_address); -- another session may have committed it while we waited
    if found_id is not null then
        return found_id;
    end if;
    is_email := wanted.kind = 'email';
    insert into public.contacts (tenant_id, email, phone_number, first_name, last_name, sales_id, tags)
    values (p_tenant,
        case when is_email then coalesce(substring(p_address from '<([^<>]+)>\s*$'), btrim(p_address)) end,
        case when not is_email then public.normalize_phone(p_address) end,
        case when is_email then split_part(wanted.key, '@', 1) else public.normalize_phone(p_address) end,
        '', p_sales_id, '{auto-created,unqualified}')
    returning id into found_id;
    return found_id;
end $$;
revoke execute on function tributary.ensure_contact(uuid, text, bigint) from public;
grant execute on function tributary.ensure_contact(uuid, text, bigint) to service_role;
