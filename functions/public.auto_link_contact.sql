-- public.auto_link_contact.sql: links each new activity to the contact of its address, and creates that contact if the channel is set to do so.
create or replace function public.auto_link_contact() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    party text;
begin
    if new.contact_id is not null then
        return new;
    end if;
    party := tributary.party(new.direction, new.metadata);
    if party is null then
        return new;
    end if;
    new.contact_id := tributary.match_contact(new.tenant_id, party);
    if new.contact_id is null and new.provider_id is not null and exists (
        select from public.ingestion_providers p where p.tenant_id = new.tenant_id and p.id = new.provider_id and p.auto_create_contacts)
    then
        new.contact_id := tributary.ensure_contact(new.tenant_id, party, new.sales_id);
    end if;
    return new;
end $$;
revoke execute on function public.auto_link_contact() from public;
create or replace trigger before_insert_activity_link_contact before insert on public.activities
    for each row execute function public.auto_link_contact();
