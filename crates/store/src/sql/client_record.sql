-- client_record.sql: one record of a client, by its id $1.
select c.id, c.client_id, c.source_id, s.name as source_name, s.provider as source_provider, c.external_id, c.client_name, c.industry, c.summary,
    c.key_facts, c.evidence, c.document_id, c.matched_by, c.said,
    coalesce(c.identity ->> 'kind', 'organisation') as kind,
    array(select jsonb_array_elements_text(case jsonb_typeof(c.identity -> 'emails') when 'array' then c.identity -> 'emails' else '[]' end)) as emails,
    c.created_at, c.updated_at, d.id as record_document_id, d.document_type as record_type, d.title as record_title
from public.client_intelligence c
left join public.connected_sources s on s.tenant_id = c.tenant_id and s.id = c.source_id
left join public.source_documents d on d.tenant_id = c.tenant_id and d.source_id = c.source_id and d.external_id = c.external_id and d.deleted_at is null
where c.id = $1
