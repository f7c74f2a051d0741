-- chunks_insert.sql: inserts tenant $1's new chunks.
insert into public.document_chunks (tenant_id, id, document_id, ordinal, title, lang, text, hash, occurrence, page, page_label)
select $1, r.id, r.document_id, r.ordinal, r.title, r.lang::regconfig, r.text, r.hash, r.occurrence, r.page, left(r.page_label, 200)
from unnest($2::uuid[], $3::uuid[], $4::int4[], $5::text[], $6::text[], $7::text[], $8::bytea[], $9::int4[], $10::int4[], $11::text[]) r (
    id, document_id, ordinal, title, lang, text, hash, occurrence, page, page_label)
