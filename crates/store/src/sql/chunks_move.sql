-- chunks_move.sql: sets the ordinals $3, titles $4 and languages $5 of tenant $1's chunks $2. Unchanged rows are not written.
update public.document_chunks c
set ordinal = r.ordinal, title = r.title, lang = r.lang::regconfig
from unnest($2::uuid[], $3::int4[], $4::text[], $5::text[]) r (id, ordinal, title, lang)
where c.tenant_id = $1 and c.id = r.id and (c.ordinal, c.title, c.lang) is distinct from (r.ordinal, r.title, r.lang::regconfig)
