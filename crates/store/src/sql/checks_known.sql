-- checks_known.sql: what is known of the letters $3 of tenant $1's mailbox $2: a word, and for those that a rule left out its name. A letter of
-- which nothing is known has no row.
select l.external_id, k.known, p.skip_reason
from unnest($3::text[]) l (external_id)
left join public.source_documents d on d.tenant_id = $1 and d.source_id = $2 and d.external_id = l.external_id
left join public.sync_failures f on f.tenant_id = $1 and f.source_id = $2 and f.external_id = l.external_id
left join public.processed_messages p on p.source_id = $2 and p.message_id = substr(l.external_id, 9) -- after `message:`
cross join lateral (select case
    when d.id is not null and d.deleted_at is null then 'stored'
    when d.removed_at is not null then 'kept_out'
    when f.skipped_at is not null then 'kept_out'
    when f.external_id is not null then 'failed'
    when p.skip_reason is not null and p.let_in_at is null then 'skipped'
    when p.message_id is not null then 'lost' end) k (known)
where k.known is not null
