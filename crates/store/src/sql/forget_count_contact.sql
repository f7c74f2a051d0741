-- forget_count_contact.sql: what goes with tenant $1's contact $2, counted up to $3 of a kind; chunks are those of up to $4 documents, whose rows it reads.
with some_activities as materialized (
    select id from public.activities where tenant_id = $1 and contact_id = $2::bigint limit $3
)
select (select count(*) from some_activities) as activities,
    (select count(*) from (select from some_activities a join tributary.activity_attachments f on f.activity_id = a.id limit $3) f)
        + (select count(*) from (select from some_activities a join tributary.activity_recordings f on f.activity_id = a.id limit $3) f) as files,
    (select count(*) from (select from public.source_documents where tenant_id = $1 and contact_id = $2::bigint limit $3) d) as documents,
    (select coalesce(sum(d.n_chunks), 0)::bigint from (
        select n_chunks from public.source_documents where tenant_id = $1 and contact_id = $2::bigint limit $4) d) as chunks,
    0::bigint as clients, 0::bigint as contacts, 0::bigint as sources, 0::bigint as channels, 0::bigint as keys, 0::bigint as jobs
