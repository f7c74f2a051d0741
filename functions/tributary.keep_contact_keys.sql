-- tributary.keep_contact_keys.sql: keeps contact_keys in step with each contact's own e-mail address and number.
create or replace function tributary.keep_contact_keys() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'UPDATE' then
        delete from public.contact_keys k where k.tenant_id = new.tenant_id and k.contact_id = new.id and k.origin = 'contact';
    end if;
    perform tributary.add_contact_key(new.tenant_id, new.id, new.email, 'contact');
    perform tributary.add_contact_key(new.tenant_id, new.id, new.phone_number, 'contact');
    return null;
end $$;
revoke execute on function tributary.keep_contact_keys() from public;
create or replace trigger contact_keys_inserted after insert on public.contacts
    for each row execute function tributary.keep_contact_keys();
create or replace trigger contact_keys_updated after update of email, phone_number on public.contacts
    for each row when (old.email is distinct from new.email or old.phone_number is distinct from new.phone_number)
    execute function tributary.keep_contact_keys();

-- Adds the keys of contacts that are older than the triggers.
select tributary.add_contact_key(c.tenant_id, c.id, c.email, 'contact'), tributary.add_contact_key(c.tenant_id, c.id, c.phone_number, 'contact')
from public.contacts c
where not exists (select from public.contact_keys k where k.tenant_id = c.tenant_id and k.contact_id = c.id);
