-- attachments_unremembered.sql: at most $2 activities of all tenants, the newest first, with files that nobody has looked at for $3 seconds, and of which no
-- queue, no archive and no parked item speaks. None at all while an activity or a file waits to be remembered or read: those are live.
select f.tenant_id, f.activity_id
from tributary.activity_attachments f join public.activities a on a.tenant_id = f.tenant_id and a.id = f.activity_id
where f.remembered_at is null and a.created_at < coalesce($1, now()) - make_interval(secs => $3)
    and not exists (select from pgmq.q_remember_activity where vt <= coalesce($1, now()))
    and not exists (select from pgmq.q_document_queue where vt <= coalesce($1, now()))
    and not exists (select from pgmq.q_remember_activity q where q.message ->> 'activity_id' = f.activity_id::text)
    and not exists (select from pgmq.a_remember_activity d where d.message ->> 'activity_id' = f.activity_id::text)
    and not exists (select from tributary.parked p where p.queue = 'remember_activity' and p.message ->> 'activity_id' = f.activity_id::text)
group by f.activity_id, f.tenant_id
order by f.activity_id desc
limit $2
