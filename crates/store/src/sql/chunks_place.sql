-- chunks_place.sql: tenant $1's chunks $2 stand at ordinals $3 under titles $4 in languages $5; those that did already are not written.
update public.document_chunks c
set ordinal = r.ordinal, title = r.title, lang = r.lang::regconfig
from unnest($2::uuid[], $3::int4[], $4::text[], $5::text[]) r (id, ordinal, title, lang)
where c.tenant_id = $1 and c.id = r.id and (c.ordinal, c.title, c.lang) is distinct from (r.ordinal, r.title, r.lang::regconfig)
