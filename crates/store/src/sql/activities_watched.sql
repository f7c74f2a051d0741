-- activities_watched.sql: of every tenant, how many activities have been claimed for over $2 seconds at $1 (default now), and which
-- share of its last 1,000 matches no contact.
select t.id as tenant_id,
    (select count(*) from public.activities a
        where a.processing_status = 'processing' and a.tenant_id = t.id and a.claimed_at < coalesce($1, now()) - make_interval(secs => $2)) as long_held,
    (select count(*) filter (where l.contact_id is null)::float8 / nullif(count(*), 0)
        from (select a.contact_id from public.activities a where a.tenant_id = t.id order by a.created_at desc limit 1000) l) as unmatched_share
from public.tenants t
