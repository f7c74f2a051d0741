-- clients_records.sql: the records of clients $1: of each client the first $3 that are people ($2), or the first $3 that are not. The one that leads is
-- first, and of many records those that a person wrote are never left out.
select c.id, c.client_id, c.source_id, s.name as source_name, s.provider as source_provider, c.external_id, c.client_name, c.industry, c.summary,
    c.key_facts, c.evidence, c.document_id, c.matched_by, c.said,
    coalesce(c.identity ->> 'kind', 'organisation') as kind,
    array(select jsonb_array_elements_text(case jsonb_typeof(c.identity -> 'emails') when 'array' then c.identity -> 'emails' else '[]' end)) as emails,
    c.created_at, c.updated_at, d.id as record_document_id, d.document_type as record_type, d.title as record_title
from unnest($1::uuid[]) w (client_id)
cross join lateral (
    select * from public.client_intelligence m
    where m.client_id = w.client_id and (coalesce(m.identity ->> 'kind', 'organisation') = 'person') = $2
    order by m.id <> m.client_id, m.source_id is not null, lower(m.client_name), m.external_id, m.id limit $3) c
left join public.connected_sources s on s.tenant_id = c.tenant_id and s.id = c.source_id
left join public.source_documents d on d.tenant_id = c.tenant_id and d.source_id = c.source_id and d.external_id = c.external_id and d.deleted_at is null
order by c.client_id, c.id <> c.client_id, s.provider, lower(c.client_name), c.external_id, c.id
