-- chunks_move.sql: sets the ordinals $3, titles $4, languages $5 and pages $6 and $7 of tenant $1's chunks $2. Unchanged rows are not written.
update public.document_chunks c
set ordinal = r.ordinal, title = r.title, lang = r.lang::regconfig, page = r.page, page_label = left(r.page_label, 200)
from unnest($2::uuid[], $3::int4[], $4::text[], $5::text[], $6::int4[], $7::text[]) r (id, ordinal, title, lang, page, page_label)
where c.tenant_id = $1 and c.id = r.id
    and (c.ordinal, c.title, c.lang, c.page, c.page_label) is distinct from (r.ordinal, r.title, r.lang::regconfig, r.page, left(r.page_label, 200))
