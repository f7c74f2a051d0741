-- activity_known.sql: the activities of the events ($1 channels, $2 keys).
select a.provider_id, a.event_key, a.id
from unnest($1::uuid[], $2::text[]) as e (provider_id, event_key)
join public.activities a on a.provider_id = e.provider_id and a.event_key = e.event_key
