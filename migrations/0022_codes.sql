-- The nearest vectors of a large memory are found by codes, short forms that the server holds in its own memory (docs/adr/0033-codes.md).

-- The vectors that no code has yet. A trigger on each table of vectors keeps it in the transaction that writes the vector.
-- Retention: until the next codes take them (upkeep task `vectors`).
create table memory.fresh_vectors (
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    model text not null,
    chunk_id uuid not null,
    primary key (tenant_id, model, chunk_id)
);
select tributary.protect('memory.fresh_vectors');

-- The codes of some vectors, written once and never changed; domain::codes describes the bytes. The upkeep task `vectors` makes them of fresh vectors, and
-- large ones of several. Retention: until others replace them.
create table memory.codes (
    tenant_id uuid not null references public.tenants (id) on delete cascade,
    model text not null,
    id bigint generated always as identity,
    n_chunks int not null,
    bytes bytea not null,
    made_at timestamptz not null default now(),
    primary key (tenant_id, model, id)
);
-- They compress little, and are read whole.
alter table memory.codes alter column bytes set storage external;
select tributary.protect('memory.codes');

-- functions/memory.keep_fresh_vectors.sql replaces it.
create or replace function memory.keep_fresh_vectors() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into memory.fresh_vectors (tenant_id, model, chunk_id)
    select a.tenant_id, substr(tg_table_name, 9), a.chunk_id from after a on conflict do nothing;
    return null;
end $$;

-- What was embedded before. New tables of vectors get the trigger from memory.ensure_model.
do $$
declare
    known text;
begin
    for known in select name from memory.models loop
        execute format(
            'create trigger keep_fresh_vectors after insert on memory.%I referencing new table as after
                 for each statement execute function memory.keep_fresh_vectors()', 'vectors_' || known);
        execute format(
            'insert into memory.fresh_vectors (tenant_id, model, chunk_id) select tenant_id, %L, chunk_id from memory.%I on conflict do nothing',
            known, 'vectors_' || known);
    end loop;
end $$;
