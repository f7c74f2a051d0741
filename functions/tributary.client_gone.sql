-- tributary.client_gone.sql: has records matched again when a record goes, or loses keys: those of the same client, and those that had a key in common
-- with it, because an address that was shared may be one client's alone now. A record goes only while nobody matches the tenant's records: another one
-- could be joined to it meanwhile (store::clients::matching::lock takes the same lock).
create or replace function tributary.client_gone() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    lost record;
begin
    if tg_when = 'BEFORE' then
        perform pg_advisory_xact_lock(hashtextextended(old.tenant_id::text, {{CLIENTS_LOCK}}));
        return old;
    end if;
    if tg_op = 'UPDATE' then
        update public.client_intelligence c set marks = c.marks + 1
        where c.tenant_id = new.tenant_id and c.id <> new.id and c.marks = c.matched_marks
            and c.keys && array(select unnest(old.keys) except select unnest(new.keys));
        return null;
    end if;
    for lost in
        select g.tenant_id, array_agg(distinct g.client_id) as clients, array_agg(distinct k.key) filter (where k.key is not null) as keys
        from gone g left join lateral unnest(g.keys) k (key) on true group by g.tenant_id
    loop
        -- One that waits already is not marked again: it is not being matched now.
        update public.client_intelligence c set marks = c.marks + 1
        where c.tenant_id = lost.tenant_id and c.client_id = any (lost.clients) and c.marks = c.matched_marks;
        update public.client_intelligence c set marks = c.marks + 1
        where c.tenant_id = lost.tenant_id and c.keys && lost.keys and c.marks = c.matched_marks;
    end loop;
    return null;
end $$;
revoke execute on function tributary.client_gone() from public;
create or replace trigger client_going before delete on public.client_intelligence
    for each row execute function tributary.client_gone();
create or replace trigger client_gone after delete on public.client_intelligence
    referencing old table as gone for each statement execute function tributary.client_gone();
create or replace trigger client_changed after update of keys on public.client_intelligence
    for each row when (old.keys <> '{}' and old.keys is distinct from new.keys) execute function tributary.client_gone();
