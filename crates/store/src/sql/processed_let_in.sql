-- processed_let_in.sql: notes that $4 wants letters of tenant $1's source $2 that were left out: letter $5, or up to $7 of those that rule $6 left out, the
-- latest first. Rows are locked in the order of their ids, as a page's commit does (processed_mark.sql).
with wanted as materialized (
    select message_id from public.processed_messages
    where tenant_id = $1 and source_id = $2 and skip_reason is not null and (message_id = $5 or skip_reason = $6)
    order by let_in_at is not null, received_at desc, message_id limit $7
), locked as materialized (
    select message_id from public.processed_messages
    where tenant_id = $1 and source_id = $2 and skip_reason is not null and message_id in (select message_id from wanted)
    order by message_id for update
)
update public.processed_messages p set let_in_at = coalesce($3, now()), let_in_by = $4
from locked l
where p.tenant_id = $1 and p.source_id = $2 and p.message_id = l.message_id
returning p.message_id
