-- document_field_say.sql: $9 says that field $3, $4 of tenant $1's document $2 is $5 to $8. Where it was read stays, as far as it is known.
insert into public.document_fields as f (tenant_id, document_id, name, ordinal, value, on_date, amount, currency, state, said_by, said_at)
values ($1, $2, $3, $4, left($5, 2000), $6, $7::text::numeric, left($8, 8), 'said', left($9, 100), coalesce($10, now()))
on conflict (tenant_id, document_id, name, ordinal) do update
set value = excluded.value, on_date = excluded.on_date, amount = excluded.amount, currency = excluded.currency, state = 'said', note = null,
    said_by = excluded.said_by, said_at = excluded.said_at
