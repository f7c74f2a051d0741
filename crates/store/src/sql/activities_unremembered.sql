-- activities_unremembered.sql: of tenant $1's newest 100 events up to $2 that are no document yet (their documents' names begin with $3), the newest first. (Materialized: under a policy
-- only a finished name is compared by the index.)
with newest as materialized (
    select a.id, a.type, a.processing_status, left(coalesce(a.raw_data ->> 'subject', ''), 300) as subject,
        left(coalesce(a.metadata ->> 'from', ''), 200) as "from", coalesce(s.name, '') as source_name, a.created_at,
        coalesce(s.id, (select m.id from public.connected_sources m where m.tenant_id = $1 and m.provider = 'manual')) as source_id,
        $3::text || a.id as external_id
    from public.activities a left join public.connected_sources s on s.tenant_id = a.tenant_id and s.id = a.provider_id
    where a.tenant_id = $1
    order by a.created_at desc
    limit 100
)
select n.id, n.type, n.processing_status, n.subject, n."from", n.source_name, n.created_at
from newest n
where not exists (select from public.source_documents d where d.source_id = n.source_id and d.external_id = n.external_id)
order by n.created_at desc
limit $2
