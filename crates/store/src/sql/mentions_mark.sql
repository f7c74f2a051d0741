-- mentions_mark.sql: marks tenant $1's clients that documents ($2, $3) concern: those mentioned until now, those mentioned from now on ($4, $5),
-- and the clients that mention one of them (a client mentions itself). The order is that of their names, so two batches cannot deadlock.
-- Each is looked up by its key, whatever the statistics say (see documents_look.sql).
insert into tributary.dirty_clients as c (tenant_id, source_id, external_id)
select $1, t.source_id, t.external_id from (
    select n.source_id, m.mentions as external_id
    from unnest($2::uuid[], $3::text[]) n (source_id, external_id)
    cross join lateral (
        select m.mentions from public.document_mentions m where m.source_id = n.source_id and m.external_id = n.external_id offset 0) m
    union
    select * from unnest($4::uuid[], $5::text[])
    union
    select n.source_id, m.external_id
    from unnest($2::uuid[], $3::text[]) n (source_id, external_id)
    cross join lateral (
        select m.external_id from public.document_mentions m where m.source_id = n.source_id and m.mentions = n.external_id offset 0) m
    cross join lateral (
        select from public.document_mentions s
        where s.source_id = n.source_id and s.external_id = m.external_id and s.mentions = m.external_id offset 0) self
) t
order by t.source_id, t.external_id
on conflict (source_id, external_id) do update set marks = c.marks + 1
