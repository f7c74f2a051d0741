-- clients_count.sql: counts the caller's clients that clients_list.sql lists for $1 and $2; it stops at $3.
select count(*) from (
    select from public.client_intelligence c
    where c.id = c.client_id
        and ($1::text is null or exists (
            select from public.client_intelligence m where m.tenant_id = c.tenant_id and m.client_id = c.id
                and (position(lower($1) in lower(m.client_name)) > 0 or exists (
                    select from unnest(m.keys) k (key)
                    where (starts_with(k.key, 'domain:') or starts_with(k.key, 'email:')) and position(lower($1) in substr(k.key, strpos(k.key, ':') + 1)) > 0))))
        and ($2::text is null or exists (
            select from public.client_intelligence m where m.tenant_id = c.tenant_id and m.client_id = c.id and lower(m.client_name) = lower($2)))
    limit $3) c
