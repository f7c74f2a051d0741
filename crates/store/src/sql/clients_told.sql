-- clients_told.sql: the records of tenant $1's source $2 about clients $3: their own, those they mention, and those of types $4 that mention them.
with named as (
    select w.client, w.client as external_id from unnest($3::text[]) w (client)
    union
    select m.external_id, m.mentions from public.document_mentions m where m.source_id = $2 and m.external_id = any($3)
    union
    select m.mentions, m.external_id from public.document_mentions m where m.source_id = $2 and m.mentions = any($3)
)
select n.client, d.id, d.external_id, d.document_type, d.raw_payload, d.source_updated_at
from named n
cross join lateral (
    select * from public.source_documents s where s.source_id = $2 and s.external_id = n.external_id offset 0
) d
where d.tenant_id = $1 and d.deleted_at is null
    and (d.external_id = n.client or d.document_type = any($4)
        or exists (select from public.document_mentions m where m.source_id = $2 and m.external_id = n.client and m.mentions = d.external_id))
