-- session_caller.sql: the caller behind the session with hash $1, unless it ended, its key was revoked, or its tenant is being forgotten. Notes its use and
-- the address $3, at most once a minute. A person's session has the person's name and role.
with used as (
    update tributary.sessions set last_used_at = coalesce($2, now()), address = coalesce($3, address),
        expires_at = case when idle_days is null then expires_at
            else greatest(expires_at, least(created_at + interval '1 year', coalesce($2, now()) + make_interval(days => idle_days))) end
    where hash = $1 and kind = 'session' and expires_at > coalesce($2, now())
        and (last_used_at is null or last_used_at < coalesce($2, now()) - interval '1 minute')
)
select k.tenant_id, t.name as tenant_name, t.is_operator, k.id as key_id, k.sales_id, p.user_id, k.scopes,
    case when k.is_sign_in then coalesce(nullif(trim(concat_ws(' ', p.first_name, p.last_name)), ''), p.email, k.name) else k.name end as key_name,
    case when k.is_sign_in then p.role end as role
from tributary.sessions s
join tributary.api_keys k on k.tenant_id = s.tenant_id and k.id = s.key_id
join public.tenants t on t.id = k.tenant_id
left join public.sales p on p.tenant_id = k.tenant_id and p.id = k.sales_id
where s.hash = $1 and s.kind = 'session' and s.expires_at > coalesce($2, now()) and t.forgetting_at is null and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > now()) and (not k.is_sign_in or p.role is not null)
