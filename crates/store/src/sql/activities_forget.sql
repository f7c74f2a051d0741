-- activities_forget.sql: removes tenant $1's activities $2 with their files and the documents made from both, as far as those have up to $3 chunks
-- together. If the first document has more chunks than that, $3 of them go instead. Returns the numbers of activities, files, documents and such chunks.
with documents as materialized (
    select d.id, a.id as activity_id, sum(d.n_chunks) over (order by a.id, d.id) as total
    from public.activities a
    cross join lateral unnest(array[a.provider_id,
        (select m.id from public.connected_sources m where m.tenant_id = $1 and m.provider = 'manual')]) s (id)
    -- Each by its key alone: with the tenant beside it, a plan without statistics reads all documents of the source.
    cross join lateral (
        select 'activity:' || a.id::text
        union all
        select 'attachment:' || a.id::text || '/' || f.ordinal from tributary.activity_attachments f where f.activity_id = a.id) n (name)
    cross join lateral (
        select d.tenant_id, d.id, d.n_chunks from public.source_documents d
        where d.source_id = s.id and d.external_id = n.name offset 0) d
    where a.tenant_id = $1 and a.id = any ($2) and d.tenant_id = $1
), gone_documents as (
    delete from public.source_documents where tenant_id = $1 and id = any (array(select id from documents where total <= $3)) returning 1
), gone as (
    delete from public.activities where tenant_id = $1 and id = any ($2) and id <> all (array(select activity_id from documents where total > $3))
    returning id
), large as materialized (
    select id from documents where not exists (select from documents where total <= $3) order by total limit 1
), parts as (
    delete from public.document_chunks where tenant_id = $1 and id = any (array(
        select c.id from public.document_chunks c join large on c.document_id = large.id where c.tenant_id = $1 limit $3))
    returning 1
), smaller as (
    update public.source_documents d set n_chunks = greatest(d.n_chunks - $3, 0) from large where d.tenant_id = $1 and d.id = large.id
)
select (select count(*) from gone),
    (select count(*) from tributary.activity_attachments f where f.activity_id in (select id from gone))
        + (select count(*) from tributary.activity_recordings f where f.activity_id in (select id from gone)),
    (select count(*) from gone_documents),
    (select count(*) from parts)
