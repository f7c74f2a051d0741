-- processed_mark.sql: marks letters of tenant $1's source $2 as dealt with, in the order of their ids. What a person let in stays let in, and
-- what was forgotten meanwhile stays forgotten.
insert into public.processed_messages as p (tenant_id, source_id, processed_at, message_id, skip_reason, received_at, sender, subject)
select $1, $2, coalesce($3, now()), r.message_id, r.skip_reason, r.received_at, r.sender, r.subject
from unnest($4::text[], $5::text[], $6::timestamptz[], $7::text[], $8::text[]) r (message_id, skip_reason, received_at, sender, subject)
order by r.message_id
on conflict (source_id, message_id) do update set processed_at = excluded.processed_at,
    skip_reason = case when p.skip_reason = 'forgotten' and p.let_in_at is null then p.skip_reason else excluded.skip_reason end,
    received_at = excluded.received_at, sender = excluded.sender, subject = excluded.subject
