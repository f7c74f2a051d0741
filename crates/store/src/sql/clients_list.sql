-- clients_list.sql: up to $4 of the caller's clients by name: only client $1, those whose name contains $2, those with the name $3. With $5, one per
-- name, the one with the most facts: a company or customer before its people, whose records are of kind $6.
select * from (
    select distinct on (case when $5 then lower(c.client_name) else c.id::text end)
        c.id, c.source_id, s.name as source_name, s.provider as source_provider, c.external_id, c.client_name, c.industry, c.summary, c.key_facts,
        c.evidence, c.document_id, c.created_at, c.updated_at, count(*) over (partition by lower(c.client_name)) as n_alike,
        (select d.title from public.source_documents d where d.source_id = c.source_id and d.external_id = c.external_id) as record_title
    from public.client_intelligence c left join public.connected_sources s on s.tenant_id = c.tenant_id and s.id = c.source_id
    where ($1::uuid is null or c.id = $1) and ($2::text is null or position(lower($2) in lower(c.client_name)) > 0)
        and ($3::text is null or lower(c.client_name) = lower($3))
    order by case when $5 then lower(c.client_name) else c.id::text end, coalesce(starts_with(c.external_id, $6::text || ':'), false), c.id
) c
order by lower(c.client_name), coalesce(starts_with(c.external_id, $6::text || ':'), false), c.id limit $4
