-- letters_forget_heads.sql: of up to $3 letters that rules left out and that tenant $1's contact $2 sent, removes what is known: its address and the
-- subject. They stay out as forgotten. The addresses are those of the removal that is under way.
with theirs as materialized (
    select p.source_id, p.message_id from public.processed_messages p
    where p.tenant_id = $1 and p.sender is not null and (tributary.address_key(p.sender)).key = any (array(
        select unnest(f.address_keys) from public.forgotten f where f.tenant_id = $1 and f.done_at is null and f.what = 'Contact ' || $2::text))
    order by p.source_id, p.message_id limit $3 for update
)
update public.processed_messages p set skip_reason = 'forgotten', sender = null, subject = null, let_in_at = null, let_in_by = null
from theirs t where p.tenant_id = $1 and p.source_id = t.source_id and p.message_id = t.message_id
