-- memory.ensure_model.sql: creates a model's table of vectors on first use. It fails if the model is known with other dimensions.
-- Rows are inserted and deleted, never updated; vectors have unit length, distance is <#>. Retention: with the chunk.
create or replace function memory.ensure_model(p_name text, p_dim int, p_weight float8) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    known int;
    -- pgvector may be in any schema. This runs with its owner's rights, so the schema is named instead of searched for.
    vector_schema constant text := (
        select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector');
begin
    select dim into known from memory.models where name = p_name;
    if not found then
        perform pg_advisory_xact_lock(hashtext('memory.ensure_model'));
        insert into memory.models (name, dim, weight) values (p_name, p_dim, p_weight) on conflict do nothing;
        if found then
            execute format(
                'create table memory.%1$I (
                     tenant_id uuid not null, chunk_id uuid not null, document_id uuid, embedding %3$I.halfvec(%2$s) not null,
                     primary key (tenant_id, chunk_id),
                     foreign key (tenant_id, chunk_id) references public.document_chunks (tenant_id, id) on delete cascade)',
                'vectors_' || p_name, p_dim, vector_schema);
            if p_dim <= 3000 then
                -- Stored in the row itself, not out of line: an exact search reads every vector.
                execute format('alter table memory.%I alter column embedding set storage plain', 'vectors_' || p_name);
            end if;
            execute format('create index on memory.%I (tenant_id, document_id)', 'vectors_' || p_name);
            execute format(
                'create trigger keep_fresh_vectors after insert on memory.%I referencing new table as after
                     for each statement execute function memory.keep_fresh_vectors()', 'vectors_' || p_name);
            perform tributary.protect(format('memory.%I', 'vectors_' || p_name)::regclass);
        end if;
        select dim into known from memory.models where name = p_name;
    end if;
    if known <> p_dim then
        raise exception 'model % has % dimensions here, not %', p_name, known, p_dim using errcode = 'invalid_parameter_value';
    end if;
end $$;
revoke execute on function memory.ensure_model(text, int, float8) from public;
grant execute on function memory.ensure_model(text, int, float8) to service_role;
