-- memory.words.sql: returns the words of a chunk, those of its title marked A. Titles are taken as they are written, texts in their language.
create or replace function memory.words(p_title text, p_lang regconfig, p_text text) returns tsvector
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
return setweight(to_tsvector('pg_catalog.simple', tributary.fold(coalesce(p_title, ''))), 'A') || to_tsvector(p_lang, tributary.fold(p_text));
revoke execute on function memory.words(text, regconfig, text) from public;
grant execute on function memory.words(text, regconfig, text) to service_role, authenticated;
