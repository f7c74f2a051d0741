-- contact_merge_undo_fields.sql: takes back from tenant $1's contact what merge $2 gave it: fields that it lacked and that nobody has changed since, and tags.
update public.contacts c
set email = case when b.email is null and c.email = f.email then null else c.email end,
    phone_number = case when b.phone_number is null and c.phone_number = f.phone_number then null else c.phone_number end,
    first_name = case when c.first_name = f.first_name then b.first_name else c.first_name end,
    last_name = case when c.last_name = f.last_name then b.last_name else c.last_name end,
    company = case when b.company is null and c.company = f.company then null else c.company end,
    tags = array(select t from unnest(c.tags) with ordinality o (t, nth) where t = any (b.tags) or t <> all (f.tags) order by nth)
from public.contact_merges m,
    lateral jsonb_populate_record(null::public.contacts, m.merged -> 'before') b,
    lateral jsonb_populate_record(null::public.contacts, m.merged -> 'contact') f
where m.tenant_id = $1 and m.id = $2 and c.tenant_id = $1 and c.id = m.contact_id
