-- tributary.client_documents.sql: returns the documents of one of the caller's clients: its records and what mentions them, its own texts, what came
-- from its contacts, what people wrote about it, and documents whose title has the client's name.
create or replace function tributary.client_documents(p_client uuid) returns setof uuid
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    of_tenant uuid := tributary.tenant();
    of_client uuid;
    named tsquery;
begin
    select c.client_id into of_client from public.client_intelligence c where c.tenant_id = of_tenant and c.id = p_client;
    -- A name of one short word is in too many titles.
    select string_agg(format('(%s)', q.words), ' | ')::tsquery into named from (
        select distinct to_tsquery('simple', string_agg(quote_literal(w.word), ' <-> ' order by w.nth))::text as words
        from public.client_intelligence c
        cross join lateral regexp_split_to_table(lower(normalize(c.client_name, nfkc)), '[\s!-/:-@\[-`{-~]+') with ordinality w (word, nth)
        where c.tenant_id = of_tenant and c.client_id = of_client and length(tributary.client_name_key(c.client_name)) >= 6 and w.word <> ''
            and c.identity ->> 'kind' is distinct from 'curated'
        group by c.id
    ) q where q.words <> '';
    return query
    select d.id from (
        select x.id from public.client_intelligence c
        join public.source_documents x on x.tenant_id = of_tenant and x.source_id = c.source_id and x.external_id = c.external_id
        where c.tenant_id = of_tenant and c.client_id = of_client
        union
        select c.document_id from public.client_intelligence c
        where c.tenant_id = of_tenant and c.client_id = of_client and c.document_id is not null
        union
        select x.id from public.client_intelligence c
        join public.document_mentions m on m.source_id = c.source_id and m.mentions = c.external_id
        join public.source_documents x on x.tenant_id = of_tenant and x.source_id = m.source_id and x.external_id = m.external_id
        where c.tenant_id = of_tenant and c.client_id = of_client
        union
        select x.id from tributary.client_contacts(of_client) o
        join public.source_documents x on x.tenant_id = of_tenant and x.contact_id = o.contact_id
        union
        select x.id from public.client_intelligence c
        join public.activity_clients l on l.tenant_id = of_tenant and l.record_id = c.id
        join public.connected_sources s on s.tenant_id = of_tenant and s.provider = 'manual'
        join public.source_documents x on x.tenant_id = of_tenant and x.source_id = s.id and x.external_id = 'activity:' || l.activity_id
        where c.tenant_id = of_tenant and c.client_id = of_client
        union
        -- By the index source_documents_title_idx.
        select x.id from public.source_documents x
        where x.tenant_id = of_tenant and to_tsvector('pg_catalog.simple', tributary.fold(x.title)) @@ named and not starts_with(x.document_type, 'activity.')
    ) d;
end $$;
revoke execute on function tributary.client_documents(uuid) from public;
grant execute on function tributary.client_documents(uuid) to service_role, authenticated;
