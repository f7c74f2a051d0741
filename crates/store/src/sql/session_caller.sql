-- session_caller.sql: the caller behind the session with hash $1, unless it ended, its key was revoked, or its tenant is being forgotten.
select k.tenant_id, t.name as tenant_name, t.is_operator, k.id as key_id, k.name as key_name, k.sales_id, p.user_id, k.scopes
from tributary.sessions s
join tributary.api_keys k on k.tenant_id = s.tenant_id and k.id = s.key_id
join public.tenants t on t.id = k.tenant_id
left join public.sales p on p.tenant_id = k.tenant_id and p.id = k.sales_id
where s.hash = $1 and s.kind = 'session' and s.expires_at > coalesce($2, now()) and t.forgetting_at is null and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
