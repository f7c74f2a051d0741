-- authenticate.sql: the caller behind the key with hash $1, unless it was revoked or has expired, or its tenant is being forgotten. Notes its use, at most once a minute.
with used as (
    update tributary.api_keys set last_used_at = now()
    where hash = $1 and revoked_at is null and (last_used_at is null or last_used_at < now() - interval '1 minute')
)
select k.tenant_id, t.name as tenant_name, t.is_operator, k.id as key_id, k.name as key_name, k.sales_id, s.user_id, k.scopes
from tributary.api_keys k
join public.tenants t on t.id = k.tenant_id
left join public.sales s on s.tenant_id = k.tenant_id and s.id = k.sales_id
where k.hash = $1 and t.forgetting_at is null and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
