-- memory.filter_condition.sql: returns a search's filters as an SQL condition on a document `d` of the caller's tenant; empty without filters.
-- Every value is a quoted literal. What other tables are asked for is the caller's tenant's alone.
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
    if p_filters ? 'client' then
        -- Another tenant's client has no documents here: the function asks for the caller's own.
        condition := condition || format(' and d.id in (select tributary.client_documents(%L))', (p_filters ->> 'client')::uuid);
    end if;
    if p_filters ? 'person' then
        condition := condition || format(
            ' and (d.contact_id in (select c.id from public.contacts c where c.tenant_id = %1$L and c.sales_id = %2$L)
                or d.external_id in (select %3$L || a.id from public.activities a where a.tenant_id = %1$L and a.sales_id = %2$L))',
            tributary.tenant(), (p_filters ->> 'person')::bigint, 'activity:');
    end if;
    if p_filters ? 'channel' then
        condition := condition || format(
            ' and d.source_id in (select s.id from public.connected_sources s where s.tenant_id = %L and s.id = %L and s.provider = %L)',
            tributary.tenant(), (p_filters ->> 'channel')::uuid, 'channel');
    end if;
    -- What the paper of a document's file says. The conditions are those of indexes.
    if p_filters ? 'paper' then
        condition := condition || format(
            ' and d.id in (select f.document_id from public.document_fields f where f.tenant_id = %L and f.name = %L and left(f.value, 40) = %L)',
            tributary.tenant(), 'paper', p_filters ->> 'paper');
    end if;
    if p_filters ? 'supplier' then
        condition := condition || format(
            ' and d.id in (select f.document_id from public.document_fields f where f.tenant_id = %L and f.name = %L and strpos(lower(f.value), lower(%L)) > 0)',
            tributary.tenant(), 'supplier', p_filters ->> 'supplier');
    end if;
    if p_filters ? 'amount_min' or p_filters ? 'amount_max' then
        condition := condition || format(
            ' and d.id in (select f.document_id from public.document_fields f where f.tenant_id = %L and f.name in (%L, %L) and f.amount between %L and %L)',
            tributary.tenant(), 'total', 'amount', coalesce((p_filters ->> 'amount_min')::numeric, '-Infinity'),
            coalesce((p_filters ->> 'amount_max')::numeric, 'Infinity'));
    end if;
    if p_filters ? 'paper_since' or p_filters ? 'paper_until' then
        condition := condition || format(
            ' and d.id in (select f.document_id from public.document_fields f where f.tenant_id = %L and f.name in (%L, %L) and f.on_date between %L and %L)',
            tributary.tenant(), 'issued_on', 'starts_on', coalesce((p_filters ->> 'paper_since')::date, '-infinity'),
            coalesce((p_filters ->> 'paper_until')::date, 'infinity'));
    end if;
    if p_filters ? 'stored_after' then
        -- Nothing is updated before it is created, and the time of the update has an index.
        condition := condition || format(' and d.updated_at > %1$L and d.created_at > %1$L', (p_filters ->> 'stored_after')::timestamptz);
    end if;
    if p_filters ? 'stored_by' then
        condition := condition || format(' and d.created_at <= %L', (p_filters ->> 'stored_by')::timestamptz);
    end if;
    return condition;
end $$;
revoke execute on function memory.filter_condition(jsonb) from public;
