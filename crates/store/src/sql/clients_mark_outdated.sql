-- clients_mark_outdated.sql: marks the clients whose text is of other words than version $1, or speaks of a day before $2 as one to come. The order is
-- that of their names, so two batches cannot deadlock.
insert into tributary.dirty_clients (tenant_id, source_id, external_id)
select c.tenant_id, c.source_id, c.external_id
from public.client_intelligence c
join public.source_documents d on d.tenant_id = c.tenant_id and d.id = c.document_id
where c.source_id is not null and c.external_id is not null and d.deleted_at is null
    and (d.source_metadata ->> 'words' is distinct from ($1::int)::text or (d.source_metadata ->> 'next_due') < ($2::date)::text)
order by c.source_id, c.external_id
on conflict (source_id, external_id) do nothing
