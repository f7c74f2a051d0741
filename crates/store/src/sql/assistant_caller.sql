-- assistant_caller.sql: the caller behind the access token with hash $1 at $2, unless it expired, its assistant or key was revoked, the key with which it was
-- let in is no longer good, or its tenant is being forgotten. Notes its use, at most once a minute.
with token as (
    select tenant_id, assistant_id from tributary.assistant_tokens
    where hash = $1 and kind = 'access' and expires_at > coalesce($2, now())
), used as (
    update tributary.assistants a set last_used_at = coalesce($2, now()) from token t
    where a.tenant_id = t.tenant_id and a.id = t.assistant_id and a.revoked_at is null
        and (a.last_used_at is null or a.last_used_at < coalesce($2, now()) - interval '1 minute')
)
select k.tenant_id, n.name as tenant_name, n.is_operator, k.id as key_id, k.name as key_name, k.sales_id, p.user_id, k.scopes,
    p.role as persons_role, a.resource
from token t
join tributary.assistants a on a.tenant_id = t.tenant_id and a.id = t.assistant_id and a.revoked_at is null
join tributary.api_keys k on k.tenant_id = a.tenant_id and k.id = a.key_id and k.revoked_at is null
join tributary.api_keys b on b.tenant_id = a.tenant_id and b.id = a.let_in_by and b.revoked_at is null and (b.expires_at is null or b.expires_at > now())
join public.tenants n on n.id = k.tenant_id and n.forgetting_at is null
left join public.sales p on p.tenant_id = k.tenant_id and p.id = k.sales_id
