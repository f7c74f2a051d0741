-- contact_complete.sql: adds missing fields to tenant $1's contact $2. Known fields stay, and a part of a name counts as a name.
update public.contacts c
set email = coalesce(c.email, $3), phone_number = coalesce(c.phone_number, $4),
    first_name = case when n.is_nameless then coalesce($5, c.first_name) else c.first_name end,
    last_name = case when n.is_nameless then coalesce($6, c.last_name) else c.last_name end,
    company = coalesce(c.company, $7),
    tags = c.tags || (select coalesce(array_agg(t), '{}') from unnest($8::text[]) t where t <> all (c.tags))
from (select coalesce(o.first_name, '') = '' and coalesce(o.last_name, '') = '' as is_nameless from public.contacts o where o.tenant_id = $1 and o.id = $2) n
where c.tenant_id = $1 and c.id = $2
    and (c.email is null and $3::text is not null or c.phone_number is null and $4::text is not null
        or n.is_nameless and ($5::text is not null or $6::text is not null) or c.company is null and $7::text is not null or not $8::text[] <@ c.tags)
