-- contact_merge_restore.sql: creates the contact again that merge $2 of tenant $1 made part of another. Safe to repeat. A person who
-- is gone owns nothing. The contact is there, and empty, if the merge did not come to its end.
insert into public.contacts (id, tenant_id, email, phone_number, first_name, last_name, company, sales_id, tags, created_at)
select c.id, $1, c.email, c.phone_number, c.first_name, c.last_name, c.company,
    (select s.id from public.sales s where s.tenant_id = $1 and s.id = c.sales_id), c.tags, c.created_at
from public.contact_merges m, lateral jsonb_populate_record(null::public.contacts, m.merged -> 'contact') c
where m.tenant_id = $1 and m.id = $2
on conflict (tenant_id, id) do update set email = excluded.email, phone_number = excluded.phone_number, first_name = excluded.first_name,
    last_name = excluded.last_name, company = excluded.company, tags = excluded.tags
where coalesce(contacts.email, contacts.phone_number, contacts.first_name, contacts.last_name, contacts.company) is null
