-- document_fields_after.sql: the $7 fields of the caller's documents after field $5, $6 of document $4; of source $1, type $2 and name $3, where these are given.
select f.document_id, d.title, d.source_id, s.name as source_name, f.name, f.ordinal, f.value, f.on_date, f.amount::text as amount, f.currency, f.page, f.state
from public.document_fields f
join public.source_documents d on d.tenant_id = f.tenant_id and d.id = f.document_id
join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
where d.deleted_at is null
    and ($1::uuid is null or d.source_id = $1)
    and ($2::text is null or d.document_type = $2)
    and ($3::text is null or f.name = $3)
    and ($4::uuid is null or (f.document_id, f.name, f.ordinal) > ($4, $5::text, $6::int4))
order by f.document_id, f.name, f.ordinal
limit $7
