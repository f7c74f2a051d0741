-- activities_complete.sql: completes tenant $1's activities $3 with results $5 where key $2 still holds them at epochs $4.
update public.activities a
set processing_status = 'completed', processed_data = r.data
from unnest($3::uuid[], $4::int4[], $5::jsonb[]) r (id, epoch, data)
where a.tenant_id = $1 and a.id = r.id and a.processing_status = 'processing' and a.lock_epoch = r.epoch and a.locked_key = $2
returning a.id
