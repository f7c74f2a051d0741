-- clients_forget_facts.sql: among tenant $1's next $3 clients after $2, removes facts that rested only on documents which are gone, and clients that
-- have no other. Clients of a source are marked, so that they are derived again. Returns how many clients went, how many changed, and the last one.
with next as materialized (
    select id, evidence from public.client_intelligence where tenant_id = $1 and id > $2 order by id limit $3
), cited as materialized (
    select n.id, fact.key as fact, count(*) as n, count(d.id) as n_left, jsonb_agg(cite.id) filter (where d.id is not null) as documents
    from next n
    cross join lateral jsonb_each(case jsonb_typeof(n.evidence) when 'object' then n.evidence else '{}' end) fact
    cross join lateral jsonb_array_elements_text(case jsonb_typeof(fact.value) when 'array' then fact.value else '[]' end) cite (id)
    -- One by one, by their key: a plan that was made for a small table would read all of a tenant's documents.
    left join lateral (
        select d.id from public.source_documents d where d.tenant_id = $1
            and d.id = case when cite.id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then cite.id::uuid end offset 0) d on true
    group by n.id, fact.key
), changed as materialized (
    select id, jsonb_object_agg(fact, documents) filter (where n_left > 0) as evidence,
        coalesce(array_agg(fact) filter (where n_left = 0), '{}') as lost
    from cited group by id having sum(n_left) < sum(n)
), gone as (
    delete from public.client_intelligence where tenant_id = $1 and id = any (array(select id from changed where evidence is null))
    returning source_id, external_id, document_id
), texts as (
    delete from public.source_documents where tenant_id = $1 and id = any (array(select document_id from gone))
), kept as (
    update public.client_intelligence c
    set evidence = h.evidence, key_facts = c.key_facts - h.lost, updated_at = now(),
        industry = case when 'industry' = any (h.lost) then null else c.industry end,
        summary = case when 'summary' = any (h.lost) then null else c.summary end
    from changed h where c.tenant_id = $1 and c.id = h.id and h.evidence is not null
    returning c.source_id, c.external_id
), marked as (
    insert into tributary.dirty_clients as m (tenant_id, source_id, external_id)
    select $1, source_id, external_id from (select source_id, external_id from gone union select source_id, external_id from kept) c
    where source_id is not null
    on conflict (source_id, external_id) do update set marks = m.marks + 1, marked_at = now()
)
select (select count(*) from gone), (select count(*) from kept), (select id from next order by id desc limit 1)
