-- tributary.client_gone.sql: has the other records of a client matched again when one of its records goes.
create or replace function tributary.client_gone() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update public.client_intelligence c set marks = c.marks + 1
    from (select distinct g.tenant_id, g.client_id from gone g) g
    where c.tenant_id = g.tenant_id and c.client_id = g.client_id;
    return null;
end $$;
revoke execute on function tributary.client_gone() from public;
create or replace trigger client_gone after delete on public.client_intelligence
    referencing old table as gone for each statement execute function tributary.client_gone();
