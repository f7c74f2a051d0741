-- assistant_take.sql: uses up the code or refresh token with hash $1 and kind $2 at $3, and says whether it was used up before. Only one of several
-- that show it at once finds it unused.
with shown as (
    select hash, used_at is not null as is_used from tributary.assistant_tokens where hash = $1 and kind = $2 for update
), taken as (
    update tributary.assistant_tokens t set used_at = coalesce($3, now()) from shown s where t.hash = s.hash and not s.is_used
)
select t.tenant_id, t.assistant_id, s.is_used, t.expires_at <= coalesce($3, now()) as is_expired, t.redirect_uri, t.challenge,
    a.client_id, a.resource, n.forgetting_at is not null or a.revoked_at is not null or k.revoked_at is not null or b.revoked_at is not null
        or coalesce(b.expires_at <= now(), false) as is_revoked, k.id as key_id, k.scopes
from shown s
join tributary.assistant_tokens t on t.hash = s.hash
join tributary.assistants a on a.tenant_id = t.tenant_id and a.id = t.assistant_id
join tributary.api_keys k on k.tenant_id = a.tenant_id and k.id = a.key_id
join tributary.api_keys b on b.tenant_id = a.tenant_id and b.id = a.let_in_by
join public.tenants n on n.id = a.tenant_id
