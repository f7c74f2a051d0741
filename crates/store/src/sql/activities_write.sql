-- activities_write.sql: inserts tenant $1's activities $2, a JSON array, and returns the ids of the new ones. One whose id is taken is left alone.
insert into public.activities (id, tenant_id, type, direction, sales_id, contact_id, processing_status, raw_data, processed_data, metadata)
select w.id, $1, w.type, w.direction, w.person_id, w.contact_id, w.status, w.raw_data, w.processed_data, w.metadata
from jsonb_to_recordset($2) w (id uuid, type text, direction text, person_id bigint, contact_id bigint, status text, raw_data jsonb, processed_data jsonb,
    metadata jsonb)
order by w.id
on conflict do nothing
returning id
