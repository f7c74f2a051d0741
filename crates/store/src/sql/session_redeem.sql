-- session_redeem.sql: uses up the link with hash $1, and returns its key if link and key are still good at $2.
with used as (
    delete from tributary.sessions where hash = $1 and kind = 'once' returning tenant_id, key_id, expires_at
)
select k.tenant_id, k.id, k.is_sign_in
from used u
join tributary.api_keys k on k.tenant_id = u.tenant_id and k.id = u.key_id and k.revoked_at is null
where u.expires_at > coalesce($2, now())
