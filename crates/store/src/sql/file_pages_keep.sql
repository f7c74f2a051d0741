-- file_pages_keep.sql: keeps pages $3 to $10 of tenant $1's file $2. One that is there is replaced, unless it is read and the new one is not: somebody else has
-- recognised it meanwhile.
insert into public.file_pages as file_pages (tenant_id, sha256, number, label, text, read_by, confidence, trouble, aspect, line_places)
select $1, $2, r.number, r.label, r.text, r.read_by, r.confidence, r.trouble, r.aspect, r.line_places
from unnest($3::int4[], $4::text[], $5::text[], $6::text[], $7::float4[], $8::text[], $9::float4[], $10::bytea[])
    r (number, label, text, read_by, confidence, trouble, aspect, line_places)
on conflict (tenant_id, sha256, number) do update
set label = excluded.label, text = excluded.text, read_by = excluded.read_by, confidence = excluded.confidence, trouble = excluded.trouble,
    aspect = excluded.aspect, line_places = excluded.line_places
where file_pages.trouble is not null or excluded.trouble is null
