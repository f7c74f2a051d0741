-- people_disown.sql: makes up to $3 activities of person $2 of tenant $1 everyone's, and returns their ids.
update public.activities a set sales_id = null
where a.id = any (array(select o.id from public.activities o where o.tenant_id = $1 and o.sales_id = $2 limit $3))
returning a.id
