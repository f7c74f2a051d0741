-- clients_timeline.sql: up to $5 documents of the caller's client $1, newest first, before document $4; with $2 only files, notes and those of types $3.
with dated as (
    select d.id, d.external_id, d.document_type, d.title, s.name as source_name, coalesce(d.source_created_at, d.created_at) as at
    from tributary.client_documents($1) x (id)
    join public.source_documents d on d.id = x.id
    join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
    where d.deleted_at is null and d.document_type <> 'client' and (not $2 or d.document_type in ('note', 'file') or d.document_type = any($3::text[]))
)
select * from dated
where $4::uuid is null or (at, id) < (select coalesce(b.source_created_at, b.created_at), b.id from public.source_documents b where b.id = $4)
order by at desc, id desc limit $5
