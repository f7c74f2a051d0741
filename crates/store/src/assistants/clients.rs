//! Programs that registered themselves. They belong to no tenant.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::Secret;
use sqlx::PgConnection;

use crate::Result;
use crate::keys::hash;

/// The most that are kept. Nobody can fill the disk by registering.
pub const MOST: i64 = 10_000;
/// A person lets a program in within minutes of its registration, or not at all.
const MOST_WAIT: Duration = Duration::from_secs(600);

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Registered {
    pub id: String,
    pub name: String,
    pub redirect_uris: Vec<String>,
    secret_hash: Option<Vec<u8>>,
}

impl Registered {
    /// Whether the program has a secret, and so has to show it.
    pub fn has_secret(&self) -> bool {
        self.secret_hash.is_some()
    }

    pub fn is_secret(&self, shown: &Secret) -> bool {
        self.secret_hash.as_deref() == Some(&hash(shown)[..])
    }
}

/// Registers a program. Where there are [`MOST`], it takes the place of those that nobody has let in within ten minutes of their last use, so that whoever
/// registers thousands keeps nobody else out. `false`: there are none of those.
pub async fn register(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    id: &str,
    name: &str,
    redirect_uris: &[String],
    secret: Option<&Secret>,
) -> Result<bool> {
    let registered = sqlx::query(
        "with n as (
             select count(*) < $6 as has_room from (select from tributary.oauth_clients limit $6) some_clients
         ), left_out as (
             delete from tributary.oauth_clients where id in (
                 select c.id from tributary.oauth_clients c
                 where not (select has_room from n) and c.used_at < coalesce($5, now()) - make_interval(secs => $7)
                     and not exists (select from tributary.assistants a where a.client_id = c.id)
                 order by c.used_at limit 100)
             returning id)
         insert into tributary.oauth_clients (id, name, redirect_uris, secret_hash, created_at, used_at)
         select $1, $2, $3, $4, coalesce($5, now()), coalesce($5, now())
         where (select has_room from n) or exists (select from left_out)",
    )
    .bind(id)
    .bind(name)
    .bind(redirect_uris)
    .bind(secret.map(|secret| hash(secret).to_vec()))
    .bind(at)
    .bind(MOST)
    .bind(MOST_WAIT.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(registered.rows_affected() == 1)
}

/// Finds a program, and notes at most once an hour that it was used.
pub async fn get(conn: &mut PgConnection, at: Option<DateTime<Utc>>, id: &str) -> Result<Option<Registered>> {
    Ok(sqlx::query_as(
        "with used as (
             update tributary.oauth_clients set used_at = coalesce($2, now())
             where id = $1 and used_at < coalesce($2, now()) - interval '1 hour')
         select id, name, redirect_uris, secret_hash from tributary.oauth_clients where id = $1",
    )
    .bind(id)
    .bind(at)
    .fetch_optional(conn)
    .await?)
}
