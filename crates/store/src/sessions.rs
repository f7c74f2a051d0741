//! Browser sessions and one-time sign-in links. Both belong to a key, are stored as hashes, and end with the key. The key of a person's sessions is
//! one that nobody knows.

use chrono::{DateTime, Utc};
use domain::{Caller, KeyId, PersonId, Secret, TenantId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::keys::{CallerRow, hash, new_secret};
use crate::people::called;

const SESSION_HOURS: i32 = 12;
/// A person's session ends when it was not used for so long.
const IDLE_DAYS: i32 = 30;

/// A browser, as a request shows it.
#[derive(Clone, Debug, Default)]
pub struct Browser {
    /// Its name, in a few words.
    pub device: Option<String>,
    pub address: Option<String>,
}

/// A session that began. Only this value has its secret.
#[derive(Debug)]
pub struct Begun {
    pub secret: Secret,
    /// Whether it is a person's, which lasts while it is used.
    pub is_persons: bool,
}

/// A session or an unused link.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Session {
    pub id: Uuid,
    pub is_link: bool,
    /// The person who signs in, or to whom its key belongs.
    pub person_id: Option<i64>,
    pub key_id: Uuid,
    key_name: String,
    /// Whether a person signed in, not a key.
    pub is_sign_in: bool,
    first_name: Option<String>,
    last_name: Option<String>,
    email: Option<String>,
    pub device: Option<String>,
    /// The address of its last use.
    pub address: Option<String>,
    pub created_at: DateTime<Utc>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub expires_at: DateTime<Utc>,
    /// Whether it is the one that asks.
    pub is_current: bool,
}

impl Session {
    /// The name of the person, or of the key.
    pub fn whose(&self) -> String {
        match self.is_sign_in {
            true => called([&self.first_name, &self.last_name], [&self.email]),
            false => format!("key {}", self.key_name),
        }
    }
}

/// Removes the links of a key that nobody has used.
pub async fn drop_links(conn: &mut PgConnection, tenant_id: TenantId, key_id: KeyId) -> Result<()> {
    let sql = "delete from tributary.sessions where tenant_id = $1 and key_id = $2 and kind = 'once'";
    sqlx::query(sql).bind(tenant_id.0).bind(key_id.0).execute(conn).await?;
    Ok(())
}

/// Creates the secret of a link, which is valid once and for so many minutes.
pub async fn new_link(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key_id: KeyId,
    minutes: i32,
) -> Result<(Secret, DateTime<Utc>)> {
    insert(conn, at, tenant_id, key_id, "once", minutes, None, &Browser::default()).await
}

/// Begins a session of a key.
pub async fn new_session(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key_id: KeyId,
    browser: &Browser,
) -> Result<Begun> {
    let minutes = SESSION_HOURS * 60;
    let (secret, _) = insert(conn, at, tenant_id, key_id, "session", minutes, None, browser).await?;
    Ok(Begun { secret, is_persons: false })
}

/// Exchanges a link for a session. The link is used up, also if it is too late.
pub async fn redeem_link(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    link: &Secret,
    browser: &Browser,
) -> Result<Option<Begun>> {
    let used: Option<(Uuid, Uuid, bool)> = sqlx::query_as(include_str!("sql/session_redeem.sql"))
        .bind(&hash(link)[..])
        .bind(at)
        .fetch_optional(&mut *conn)
        .await?;
    let Some((tenant_id, key_id, is_persons)) = used else { return Ok(None) };
    let (tenant_id, key_id) = (TenantId(tenant_id), KeyId(key_id));
    if !is_persons {
        return new_session(conn, at, tenant_id, key_id, browser).await.map(Some);
    }
    let minutes = IDLE_DAYS * 24 * 60;
    let (secret, _) = insert(conn, at, tenant_id, key_id, "session", minutes, Some(IDLE_DAYS), browser).await?;
    Ok(Some(Begun { secret, is_persons }))
}

/// Returns the caller of a session, if the session is good, and notes that it was used from this address.
pub async fn caller(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    session: &Secret,
    address: Option<&str>,
) -> Result<Option<Caller>> {
    let row: Option<CallerRow> = sqlx::query_as(include_str!("sql/session_caller.sql"))
        .bind(&hash(session)[..])
        .bind(at)
        .bind(address)
        .fetch_optional(conn)
        .await?;
    Ok(row.map(Caller::from))
}

/// Lists the tenant's sessions and unused links, or those of one key or person. `asks` is the hash of the session that asks.
pub async fn list(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key_id: Option<KeyId>,
    asks: Option<[u8; 32]>,
    person_id: Option<PersonId>,
) -> Result<Vec<Session>> {
    Ok(sqlx::query_as(include_str!("sql/sessions_list.sql"))
        .bind(tenant_id.0)
        .bind(at)
        .bind(key_id.map(|key| key.0))
        .bind(asks.map(|hash| hash.to_vec()))
        .bind(person_id.map(|person| person.0))
        .fetch_all(conn)
        .await?)
}

/// Ends the session with this secret.
pub async fn end(conn: &mut PgConnection, session: &Secret) -> Result<()> {
    sqlx::query("delete from tributary.sessions where hash = $1").bind(&hash(session)[..]).execute(conn).await?;
    Ok(())
}

/// Ends a session or link of the tenant by its id, if it belongs to `key_id` where one is given. Returns its key.
pub async fn end_by_id(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key_id: Option<KeyId>,
    id: Uuid,
) -> Result<Option<KeyId>> {
    let sql = "delete from tributary.sessions where tenant_id = $1 and id = $2 and ($3::uuid is null or key_id = $3) returning key_id";
    let ended = sqlx::query_scalar(sql).bind(tenant_id.0).bind(id).bind(key_id.map(|key| key.0));
    Ok(ended.fetch_optional(conn).await?.map(KeyId))
}

#[expect(clippy::too_many_arguments, reason = "one for each column")]
async fn insert(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key_id: KeyId,
    kind: &str,
    minutes: i32,
    idle_days: Option<i32>,
    browser: &Browser,
) -> Result<(Secret, DateTime<Utc>)> {
    let secret = new_secret("");
    let expires_at = sqlx::query_scalar(
        "insert into tributary.sessions (hash, tenant_id, key_id, kind, expires_at, idle_days, device, address)
         values ($1, $2, $3, $4, coalesce($5, now()) + make_interval(mins => $6), $7, $8, $9) returning expires_at",
    )
    .bind(&hash(&secret)[..])
    .bind(tenant_id.0)
    .bind(key_id.0)
    .bind(kind)
    .bind(at)
    .bind(minutes)
    .bind(idle_days)
    .bind(&browser.device)
    .bind(&browser.address)
    .fetch_one(conn)
    .await?;
    Ok((secret, expires_at))
}
