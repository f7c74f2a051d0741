-- memory.filter_condition.sql: returns a search's filters as an SQL condition on a document `d`; empty without filters. Every value is a quoted literal.
create or replace function memory.filter_condition(p_filters jsonb) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    condition text := '';
begin
    if p_filters ? 'source' then
        condition := condition || format(' and d.source_id = %L', (p_filters ->> 'source')::uuid);
    end if;
    if p_filters ? 'type' then
        condition := condition || format(' and d.document_type = %L', p_filters ->> 'type');
    end if;
    if p_filters ? 'since' then
        condition := condition || format(' and coalesce(d.source_created_at, d.created_at) >= %L', (p_filters ->> 'since')::timestamptz);
    end if;
    if p_filters ? 'until' then
        condition := condition || format(' and coalesce(d.source_created_at, d.created_at) < %L', (p_filters ->> 'until')::timestamptz);
    end if;
    if p_filters ? 'contact' then
        condition := condition || format(' and d.contact_id = %L', (p_filters ->> 'contact')::bigint);
    end if;
    return condition;
end $$;
revoke execute on function memory.filter_condition(jsonb) from public;
