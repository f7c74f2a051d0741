-- bench_same_activity.sql: the text of a statement that inserts tenant $1's newest activity again as a new event.
select format(
    'with a as (insert into public.activities (id, tenant_id, type, direction, sales_id, raw_data, metadata, provider_id, event_key)
     values (gen_random_uuid(), %L, %L, %L, null, convert_from(%L, ''UTF8'')::jsonb, convert_from(%L, ''UTF8'')::jsonb, %L, gen_random_uuid()::text)
     returning tenant_id, id)
     insert into tributary.activity_payloads (tenant_id, activity_id, content_type, sha256, body)
     select tenant_id, id, %L, %L, %L from a;',
    a.tenant_id, a.type, a.direction, convert_to(a.raw_data::text, 'UTF8'), convert_to(a.metadata::text, 'UTF8'), a.provider_id,
    p.content_type, p.sha256, p.body)
from public.activities a join tributary.activity_payloads p on p.tenant_id = a.tenant_id and p.activity_id = a.id
where a.tenant_id = $1
order by a.created_at desc limit 1
