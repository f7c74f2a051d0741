-- memory.number_chunk.sql: gives a chunk whose words changed another number. Postings name chunks by number, so an entry never lies.
create or replace function memory.number_chunk() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    new.n := nextval('memory.chunk_numbers');
    return new;
end $$;
create or replace trigger number_chunk before update on public.document_chunks
    for each row when ((old.title, old.lang, old.text) is distinct from (new.title, new.lang, new.text)) execute function memory.number_chunk();
