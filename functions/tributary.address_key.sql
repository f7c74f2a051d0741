-- tributary.address_key.sql: returns the key of an address: its kind and its text. Both are null when it is not an address.
-- The two notations of one telephone number (Argentina's 9, Mexico's 1, Brazil's ninth digit) have the same key. So have the e-mail addresses of
-- one mailbox at a provider that ignores dots and tags.
create or replace function tributary.address_key(text, out kind text, out key text)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    address text := btrim($1);
    domain text;
    local_part text;
begin
    if address is null or address = '' or length(address) > 1000 then
        return;
    end if;
    if position('@' in address) > 0 and address !~* '^\s*(whatsapp|tel|sms|sips?|client):' then
        if address ~ '<[^<>]+>\s*$' then
            address := substring(address from '<([^<>]+)>\s*$');
        end if;
        address := translate(btrim(address), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz');
        local_part := substring(address from '^(.*)@[^@]*$');
        domain := rtrim(substring(address from '@([^@]*)$'), '.');
        if local_part = '' or domain !~ '^[^[:space:]<>()@,;:"]+$' or length(address) > 320 or local_part ~ '[[:cntrl:]<>]' then
            return;
        end if;
        if domain in ('gmail.com', 'googlemail.com') and local_part !~ '"' then
            domain := 'gmail.com';
            local_part := replace(split_part(local_part, '+', 1), '.', '');
        end if;
        if local_part <> '' then
            kind := 'email';
            key := local_part || '@' || domain;
        end if;
        return;
    end if;
    key := public.normalize_phone(address);
    if key is null then
        return;
    elsif key like '+%' then
        kind := 'phone';
        key := regexp_replace(key, '^\+549(\d{10})$', '+54\1');
        key := regexp_replace(key, '^\+521(\d{10})$', '+52\1');
        key := regexp_replace(key, '^\+55(\d{2})9([6-9]\d{7})$', '+55\1\2');
    elsif length(key) >= 10 then
        kind := 'digits';
        key := right(key, 10);
    else
        key := null;
    end if;
end $$;
grant execute on function tributary.address_key(text) to service_role;
