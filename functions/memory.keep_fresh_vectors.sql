-- memory.keep_fresh_vectors.sql: keeps `memory.fresh_vectors` in step with a table of vectors, for every writer. memory.ensure_model makes the trigger.
create or replace function memory.keep_fresh_vectors() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The table's name is `vectors_` and the model's.
    insert into memory.fresh_vectors (tenant_id, model, chunk_id)
    select a.tenant_id, substr(tg_table_name, 9), a.chunk_id from after a
    -- Locked: codes that are being made may not know this vector.
    on conflict (tenant_id, model, chunk_id) do update set chunk_id = excluded.chunk_id;
    return null;
end $$;
revoke execute on function memory.keep_fresh_vectors() from public;
