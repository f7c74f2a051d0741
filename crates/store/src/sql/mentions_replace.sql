-- mentions_replace.sql: replaces the mentions of tenant $1's documents ($2, $3) by ($4, $5, $6). Each is looked up by its key.
with gone as (
    delete from public.document_mentions m
    where m.ctid = any (array(
        select m.ctid
        from unnest($2::uuid[], $3::text[]) n (source_id, external_id)
        cross join lateral (
            select m.ctid, m.mentions from public.document_mentions m
            where m.source_id = n.source_id and m.external_id = n.external_id offset 0) m
        where not exists (
            select from unnest($4::uuid[], $5::text[], $6::text[]) w (source_id, external_id, mentions)
            where w.source_id = n.source_id and w.external_id = n.external_id and w.mentions = m.mentions)))
)
insert into public.document_mentions (tenant_id, source_id, external_id, mentions)
select $1, w.source_id, w.external_id, w.mentions from unnest($4::uuid[], $5::text[], $6::text[]) w (source_id, external_id, mentions)
on conflict do nothing
