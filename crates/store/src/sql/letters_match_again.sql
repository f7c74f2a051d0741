-- letters_match_again.sql: gives tenant $1's letters without a contact, and their files, the contact of their sender or, if the owner sent them, of their
-- first recipient; or only those of contact $2 if given. It looks at the newest 20,000 letters, if there are any. Rows are locked in the order of their ids, as batches do.
with newest as materialized (
    select d.id, d.source_id, d.thread_id, d.contact_id, d.source_metadata from public.source_documents d
    where d.tenant_id = $1 and d.document_type like '%.message' and d.deleted_at is null
        and exists (select from public.processed_messages p where p.tenant_id = $1)
    order by coalesce(d.source_created_at, d.created_at) desc, d.id desc limit 20000
), unmatched as materialized (
    select n.id, n.source_id, n.thread_id, n.source_metadata ->> 'message_id' as message_id,
        case when n.source_metadata ->> 'place' = 'sent' then n.source_metadata -> 'to' ->> 0 else n.source_metadata ->> 'from' end as party
    from newest n where n.contact_id is null
), matched as materialized (
    select u.id, u.source_id, u.thread_id, u.message_id, tributary.match_contact($1, u.party) as contact_id
    from unmatched u where u.party is not null
), theirs as materialized (
    select m.id, m.contact_id from matched m where m.contact_id = coalesce($2, m.contact_id)
    union all
    select f.id, m.contact_id from matched m
    join public.source_documents f on f.tenant_id = $1 and f.source_id = m.source_id and f.thread_id = m.thread_id
    where m.contact_id = coalesce($2, m.contact_id) and f.document_type like '%.attachment' and f.deleted_at is null and f.contact_id is null
        and f.source_metadata ->> 'message_id' = m.message_id
), held as materialized (
    -- One that is removed meanwhile has no letters.
    select c.id from public.contacts c where c.tenant_id = $1 and c.id in (select contact_id from theirs) order by c.id for key share
), locked as materialized (
    select d.id from public.source_documents d where d.tenant_id = $1 and d.id in (select id from theirs) order by d.id for update
)
update public.source_documents d set contact_id = t.contact_id
from theirs t join locked l on l.id = t.id join held h on h.id = t.contact_id
where d.tenant_id = $1 and d.id = t.id and d.contact_id is null
