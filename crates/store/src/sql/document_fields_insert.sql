-- document_fields_insert.sql: inserts the fields $3 to $13 of tenant $1's document $2. What a person said about one stays.
insert into public.document_fields (tenant_id, document_id, name, ordinal, value, on_date, amount, currency, page, quote, confidence, state, note)
select $1, $2, r.name, r.ordinal, left(r.value, 2000), r.on_date, r.amount::numeric, left(r.currency, 8), r.page, left(r.quote, 1000), r.confidence, r.state,
    left(r.note, 300)
from unnest($3::text[], $4::int4[], $5::text[], $6::date[], $7::text[], $8::text[], $9::int4[], $10::text[], $11::float4[], $12::text[], $13::text[]) r (
    name, ordinal, value, on_date, amount, currency, page, quote, confidence, state, note)
on conflict (tenant_id, document_id, name, ordinal) do nothing
