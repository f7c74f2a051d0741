-- memory.keep_fresh.sql: keeps `memory.fresh_chunks` in step with the chunks, for every writer: what was written is there with its words, what is gone
-- is not. A chunk that got another number (memory.number_chunk) is both.
create or replace function memory.keep_fresh() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    tenants uuid[];
    chunks uuid[];
    known text;
begin
    if tg_op = 'DELETE' then
        delete from memory.fresh_chunks f using before b where f.tenant_id = b.tenant_id and f.n = b.n;
        return null;
    end if;
    if tg_op = 'UPDATE' then
        delete from memory.fresh_chunks f using before b join after a on a.tenant_id = b.tenant_id and a.id = b.id
        where f.tenant_id = b.tenant_id and f.n = b.n and a.n <> b.n;
        insert into memory.fresh_chunks (tenant_id, n, length, tsv)
        select a.tenant_id, a.n, length(w.tsv), w.tsv
        from before b join after a on a.tenant_id = b.tenant_id and a.id = b.id, memory.words(a.title, a.lang, a.text) w (tsv)
        where a.n <> b.n;
        -- Codes name a chunk by its number, so its vectors get new ones. Fresh ones are locked: codes that are being made know the old number.
        select array_agg(a.tenant_id), array_agg(a.id) into tenants, chunks
        from before b join after a on a.tenant_id = b.tenant_id and a.id = b.id where a.n <> b.n;
        if chunks is not null then
            for known in select m.name from memory.models m loop
                execute format(
                    'insert into memory.fresh_vectors (tenant_id, model, chunk_id)
                     select v.tenant_id, %L, v.chunk_id from unnest($1, $2) r (tenant_id, chunk_id)
                     join memory.%I v on v.tenant_id = r.tenant_id and v.chunk_id = r.chunk_id
                     on conflict (tenant_id, model, chunk_id) do update set chunk_id = excluded.chunk_id', known, 'vectors_' || known)
                using tenants, chunks;
            end loop;
        end if;
        return null;
    end if;
    insert into memory.fresh_chunks (tenant_id, n, length, tsv)
    select a.tenant_id, a.n, length(w.tsv), w.tsv from after a, memory.words(a.title, a.lang, a.text) w (tsv);
    return null;
end $$;
revoke execute on function memory.keep_fresh() from public;
create or replace trigger keep_fresh_inserted after insert on public.document_chunks
    referencing new table as after for each statement execute function memory.keep_fresh();
create or replace trigger keep_fresh_updated after update on public.document_chunks
    referencing old table as before new table as after for each statement execute function memory.keep_fresh();
create or replace trigger keep_fresh_deleted after delete on public.document_chunks
    referencing old table as before for each statement execute function memory.keep_fresh();
