//! API keys: opaque (`trb_…`), stored as hashes, with scopes, one per device. They are not JWTs, so that they can be revoked.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use domain::{Caller, KeyId, PersonId, Role, Scope, Secret, TenantId};
use rand::RngExt;
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// Generates 32 random bytes as text, with a prefix by which people and secret scanners recognise the kind of secret.
pub fn new_secret(prefix: &str) -> Secret {
    Secret::new(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 32]>())))
}

/// The hash that is stored and looked up. The text has 256 random bits, so a fast hash is enough. Constant time is not needed: an
/// attacker who can choose the bytes of the hash has broken SHA-256.
pub fn hash(secret: &Secret) -> [u8; 32] {
    Sha256::digest(secret.reveal().as_bytes()).into()
}

#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Key {
    pub id: Uuid,
    pub name: String,
    pub scopes: Vec<String>,
    pub person: Option<String>,
    pub created_at: DateTime<Utc>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// Creates a key and returns it. It cannot be shown again.
pub async fn create(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    person_id: Option<PersonId>,
    name: &str,
    scopes: &[Scope],
) -> Result<(KeyId, Secret)> {
    create_for(conn, tenant_id, person_id, name, scopes, None).await
}

/// The same for a key that expires after a while, if one is given.
pub async fn create_for(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    person_id: Option<PersonId>,
    name: &str,
    scopes: &[Scope],
    lasts: Option<Duration>,
) -> Result<(KeyId, Secret)> {
    let (id, secret) = (KeyId::new(), new_secret("trb_"));
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    sqlx::query(
        "insert into tributary.api_keys (id, tenant_id, sales_id, name, hash, scopes, expires_at)
         values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7))",
    )
    .bind(id.0)
    .bind(tenant_id.0)
    .bind(person_id.map(|person| person.0))
    .bind(name)
    .bind(&hash(&secret)[..])
    .bind(scopes)
    .bind(lasts.map(|lasts| lasts.as_secs_f64()))
    .execute(conn)
    .await?;
    Ok((id, secret))
}

pub async fn list(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Key>> {
    Ok(sqlx::query_as(
        "select k.id, k.name, k.scopes, s.email as person, k.created_at, k.last_used_at, k.revoked_at
         from tributary.api_keys k left join public.sales s on s.tenant_id = k.tenant_id and s.id = k.sales_id
         where k.tenant_id = $1 and not k.is_sign_in and not k.is_assistant order by k.created_at desc, k.id desc",
    )
    .bind(tenant_id.0)
    .fetch_all(conn)
    .await?)
}

/// Revokes a key. Servers that cached it refuse it within 5 s. Returns `false` if there is no such valid key.
pub async fn revoke(conn: &mut PgConnection, tenant_id: TenantId, id: KeyId) -> Result<bool> {
    let revoked = sqlx::query(
        "update tributary.api_keys set revoked_at = now() where tenant_id = $1 and id = $2 and revoked_at is null",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .execute(conn)
    .await?;
    Ok(revoked.rows_affected() == 1)
}

/// Revokes a person's keys of this name except the newest `kept`. Returns those that were still valid.
pub async fn revoke_older(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    person_id: PersonId,
    name: &str,
    kept: i64,
) -> Result<Vec<KeyId>> {
    let revoked: Vec<Uuid> = sqlx::query_scalar(
        "update tributary.api_keys set revoked_at = now() where id in (
             select id from tributary.api_keys where tenant_id = $1 and sales_id = $2 and name = $3 and revoked_at is null
             order by created_at desc, id desc offset $4)
         returning id",
    )
    .bind(tenant_id.0)
    .bind(person_id.0)
    .bind(name)
    .bind(kept)
    .fetch_all(conn)
    .await?;
    Ok(revoked.into_iter().map(KeyId).collect())
}

/// Revokes the keys that were made for frames of a person's pages (`frame <origin>`).
pub async fn revoke_frames(conn: &mut PgConnection, tenant_id: TenantId, person_id: PersonId) -> Result<()> {
    let sql = "update tributary.api_keys set revoked_at = now()
         where tenant_id = $1 and sales_id = $2 and name like 'frame %' and expires_at is not null and revoked_at is null";
    sqlx::query(sql).bind(tenant_id.0).bind(person_id.0).execute(conn).await?;
    Ok(())
}

/// Returns the caller of a key, if the key is valid.
pub async fn authenticate(conn: &mut PgConnection, secret: &Secret) -> Result<Option<Caller>> {
    let row: Option<CallerRow> =
        sqlx::query_as(include_str!("sql/authenticate.sql")).bind(&hash(secret)[..]).fetch_optional(conn).await?;
    Ok(row.map(Caller::from))
}

/// Returns the key behind the dashboard's one-time links.
pub async fn ensure_dashboard(conn: &mut PgConnection, tenant_id: TenantId) -> Result<KeyId> {
    ensure_unusable(conn, tenant_id, None, "dashboard", Scope::Service).await
}

/// Returns the key behind a person's browsers, created on first use. Nobody knows its secret. Only one transaction at a time may do this for a person.
pub async fn ensure_sign_in(conn: &mut PgConnection, tenant_id: TenantId, person_id: PersonId) -> Result<KeyId> {
    let sql = "select id from tributary.api_keys where tenant_id = $1 and sales_id = $2 and is_sign_in and revoked_at is null";
    let known: Option<Uuid> =
        sqlx::query_scalar(sql).bind(tenant_id.0).bind(person_id.0).fetch_optional(&mut *conn).await?;
    if let Some(id) = known {
        return Ok(KeyId(id));
    }
    // Its scopes count for nothing: the person's role does.
    let (id, _) = create(conn, tenant_id, Some(person_id), "browser", &[Scope::Read]).await?;
    let sql = "update tributary.api_keys set is_sign_in = true where tenant_id = $1 and id = $2";
    sqlx::query(sql).bind(tenant_id.0).bind(id.0).execute(conn).await?;
    Ok(id)
}

/// Returns a key of the installation itself, created on first use. Nobody knows its secret.
pub(crate) async fn ensure_unusable(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    person_id: Option<PersonId>,
    name: &str,
    scope: Scope,
) -> Result<KeyId> {
    let known: Option<Uuid> = sqlx::query_scalar(
        "select id from tributary.api_keys where tenant_id = $1 and name = $2 and sales_id is not distinct from $3 and revoked_at is null
         order by created_at limit 1",
    )
    .bind(tenant_id.0)
    .bind(name)
    .bind(person_id.map(|person| person.0))
    .fetch_optional(&mut *conn)
    .await?;
    match known {
        Some(id) => Ok(KeyId(id)),
        None => Ok(create(conn, tenant_id, person_id, name, &[scope]).await?.0),
    }
}

#[derive(sqlx::FromRow)]
pub(crate) struct CallerRow {
    tenant_id: Uuid,
    tenant_name: String,
    is_operator: bool,
    key_id: Uuid,
    key_name: String,
    sales_id: Option<i64>,
    user_id: Option<Uuid>,
    scopes: Vec<String>,
    /// The role of a person who signed in. It decides, not the scopes.
    #[sqlx(default)]
    role: Option<String>,
}

impl From<CallerRow> for Caller {
    fn from(row: CallerRow) -> Self {
        Self {
            tenant_id: TenantId(row.tenant_id),
            tenant_name: row.tenant_name,
            key_id: KeyId(row.key_id),
            key_name: row.key_name,
            person_id: row.sales_id.map(PersonId),
            user_id: row.user_id,
            scopes: match &row.role {
                // A role of a newer release allows nothing here.
                Some(role) => role.parse().map(Role::scopes).unwrap_or_default(),
                None => known_scopes(&row.scopes, row.key_id),
            },
            is_signed_in: row.role.is_some(),
            is_operator: row.is_operator,
        }
    }
}

/// The scopes that this program knows. A newer release may have given a key one more while this process still runs: the key keeps its other
/// rights, and the unknown one allows nothing. An error would lock the key out until the upgrade is complete.
fn known_scopes(words: &[String], key_id: Uuid) -> Vec<Scope> {
    let known = words.iter().filter_map(|word| match word.parse::<Scope>() {
        Ok(scope) => Some(scope),
        Err(error) => {
            tracing::warn!(key.id = %key_id, error = %error, "a key's right is left out: this release does not know it");
            None
        }
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_secret_is_long_random_and_says_what_it_is() {
        let [one, other] = [new_secret("trb_"), new_secret("trb_")];
        assert_ne!(one.reveal(), other.reveal());
        for secret in [&one, &other] {
            let random = secret.reveal().strip_prefix("trb_").expect("its prefix");
            assert_eq!(URL_SAFE_NO_PAD.decode(random).expect("base64").len(), 32);
            assert!(
                random.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')),
                "safe in a URL"
            );
        }
    }

    #[test]
    fn what_is_stored_is_the_sha_256_of_the_text() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(domain::hex::encode(hash(&Secret::new("abc"))), expected);
    }
}
