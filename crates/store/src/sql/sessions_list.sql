-- sessions_list.sql: the sessions and unused links of tenant $1 that are good at $2, the last used first: all of them, or those of key $3, or of
-- person $5. $4 is the hash of the session that asks.
select s.id, s.kind = 'once' as is_link, k.sales_id as person_id, k.id as key_id, k.name as key_name, k.is_sign_in, p.first_name, p.last_name, p.email,
    s.device, s.address, s.created_at, s.last_used_at, s.expires_at, coalesce(s.hash = $4, false) as is_current
from tributary.sessions s
join tributary.api_keys k on k.tenant_id = s.tenant_id and k.id = s.key_id and k.revoked_at is null
left join public.sales p on p.tenant_id = k.tenant_id and p.id = k.sales_id
where s.tenant_id = $1 and s.expires_at > coalesce($2, now()) and ($3::uuid is null or s.key_id = $3)
    and ($5::bigint is null or k.sales_id = $5)
order by coalesce(s.last_used_at, s.created_at) desc, s.id
limit 500
