-- alerts_open.sql: opens an alert per finding, or refreshes the words of the one that is open; returns only the newly opened.
with given as (
    select * from unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[]) as f (id, kind, subject, what, todo)
), refreshed as (
    update tributary.alerts a set what = g.what, todo = g.todo, seen_at = coalesce($1, now())
    from given g where a.tenant_id = $2 and a.closed_at is null and a.kind = g.kind and a.subject = g.subject
)
insert into tributary.alerts (id, tenant_id, kind, subject, what, todo, since, seen_at)
select id, $2, kind, subject, what, todo, coalesce($1, now()), coalesce($1, now()) from given
on conflict (tenant_id, kind, subject) where closed_at is null do nothing
returning id, kind, subject, what, todo, since
