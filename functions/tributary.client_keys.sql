-- tributary.client_keys.sql: returns the keys by which a record is matched with others, made of its reference and identity. No other place makes them.
-- `ref`: itself and the records that it belongs to; `near`: its names with one letter left out, which names with a slip have in common.
create or replace function tributary.client_keys(p_reference text, p_identity jsonb) returns text[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with texts as (
        select f.name as field, case f.name when 'of' then t.text else left(t.text, 300) end as text
        from (values ('names'), ('domains'), ('emails'), ('of')) f (name)
        cross join lateral jsonb_array_elements_text(
            case jsonb_typeof(p_identity -> f.name) when 'array' then p_identity -> f.name else '[]' end) t (text)
    ), names as (
        select distinct tributary.client_name_key(text) as name from texts where field = 'names'
    ), keys as (
        select 'ref:' || p_reference as key
        union select 'ref:' || text from texts where field = 'of'
        union select 'name:' || name from names where name is not null
        union select 'near:' || overlay(name placing '' from nth for 1)
            from names, generate_series(1, length(name)) nth
            where length(name) between 8 and 60 and coalesce(p_identity ->> 'kind', 'organisation') = 'organisation'
        union select 'near:' || name from names where length(name) between 7 and 60 and coalesce(p_identity ->> 'kind', 'organisation') = 'organisation'
        union select 'email:' || lower(trim(text)) from texts where field = 'emails' and text like '%_@_%'
        union select 'domain:' || tributary.client_domain(text) from texts where field in ('domains', 'emails') and tributary.client_domain(text) is not null
        union select 'site:' || tributary.client_domain(text) from texts where field = 'domains' and tributary.client_domain(text) is not null
    )
    select array_agg(key order by key) from keys
$$;
revoke execute on function tributary.client_keys(text, jsonb) from public;
grant execute on function tributary.client_keys(text, jsonb) to service_role;
-- Adds the keys of clients that a person wrote before there were any.
update public.client_intelligence set keys = tributary.client_keys('hand/' || id, identity), marks = marks + 1 where source_id is null and keys = '{}';
