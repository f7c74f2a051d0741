-- languages_label.sql: gives up to $4 chunks of tenant $1's documents $2 the languages $3. Those that have them are not written.
update public.document_chunks c set lang = n.lang
from (
    select x.id, g.lang::regconfig as lang from unnest($2::uuid[], $3::text[]) g (id, lang)
    join public.document_chunks x on x.tenant_id = $1 and x.document_id = g.id and x.lang is distinct from g.lang::regconfig
    limit $4
) n
where c.tenant_id = $1 and c.id = n.id
