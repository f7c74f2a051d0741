//! Channels: one door each for somebody's webhooks. Its key and secrets are one sealed row of the vault under the channel's id;
//! the table has only the key's hash. What a channel brought outlives it.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use domain::{ChannelId, PersonId, Secret, TenantId};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::keys::{hash, new_secret};
use crate::vault::Vault;
use crate::{Error, Result};

/// A shorter secret can be guessed; whoever gives their own gives at least this many characters.
pub const SECRET_CHARS: usize = 24;

/// Whose webhooks a channel takes: how they are verified and what their fields mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    Generic,
}

impl Provider {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generic => "generic",
        }
    }
}

impl FromStr for Provider {
    type Err = Error;
    fn from_str(code: &str) -> Result<Self> {
        match code {
            "generic" => Ok(Self::Generic),
            other => Err(Error::Refused { what: format!("{other:?} is no provider of webhooks; there is generic") }),
        }
    }
}

pub struct NewChannel<'a> {
    pub provider: Provider,
    pub name: &'a str,
    /// Verified requests a minute; none: no limit.
    pub max_per_minute: Option<i32>,
    /// Signs requests; made here when not given.
    pub webhook_secret: Option<Secret>,
}

/// What opens a channel. Shown to its owner, never listed.
#[derive(Clone, Debug, Deserialize)]
pub struct Secrets {
    /// The last part of the channel's URL.
    pub ingestion_key: Secret,
    pub webhook_secret: Secret,
    pub bearer: Secret,
}

/// A channel as its owner sees it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Channel {
    pub id: Uuid,
    pub provider_code: String,
    pub name: String,
    pub is_active: bool,
    pub max_per_minute: Option<i32>,
    pub created_at: DateTime<Utc>,
}

/// A channel as the intake needs it.
#[derive(Clone, Debug)]
pub struct Opened {
    pub id: ChannelId,
    pub tenant_id: TenantId,
    pub provider: Provider,
    pub is_active: bool,
    /// Who owns what it brings; none: everyone's work.
    pub person_id: Option<PersonId>,
    pub max_per_minute: Option<i32>,
    pub secrets: Secrets,
}

/// Makes a channel, the source of its documents, and its secrets.
pub async fn create(
    conn: &mut PgConnection,
    vault: &Vault,
    tenant_id: TenantId,
    new: NewChannel<'_>,
) -> Result<(ChannelId, Secrets)> {
    let secrets = Secrets {
        ingestion_key: new_secret(""),
        webhook_secret: new.webhook_secret.unwrap_or_else(|| new_secret("")),
        bearer: new_secret("ak_live_"),
    };
    check(&secrets)?;
    let id = ChannelId::new();
    sqlx::query("insert into public.connected_sources (id, tenant_id, provider, name) values ($1, $2, 'channel', $3)")
        .bind(id.0)
        .bind(tenant_id.0)
        .bind(new.name)
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "insert into public.ingestion_providers (id, tenant_id, provider_code, name, ingestion_key_hash, max_per_minute)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(id.0)
    .bind(tenant_id.0)
    .bind(new.provider.as_str())
    .bind(new.name)
    .bind(&hash(&secrets.ingestion_key)[..])
    .bind(new.max_per_minute)
    .execute(&mut *conn)
    .await?;
    let sealed = serde_json::json!({
        "ingestion_key": secrets.ingestion_key.reveal(),
        "webhook_secret": secrets.webhook_secret.reveal(),
        "bearer": secrets.bearer.reveal(),
    });
    vault.put(conn, tenant_id, id.0, &Secret::new(sealed.to_string())).await?;
    Ok((id, secrets))
}

pub async fn list(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Channel>> {
    Ok(sqlx::query_as(
        "select id, provider_code, name, is_active, max_per_minute, created_at from public.ingestion_providers
         where tenant_id = $1 order by created_at desc, id desc",
    )
    .bind(tenant_id.0)
    .fetch_all(conn)
    .await?)
}

/// The channel whose key has this hash, with what opens it.
pub async fn find(conn: &mut PgConnection, vault: &Vault, key_hash: &[u8; 32]) -> Result<Option<Opened>> {
    type Row = (Uuid, Uuid, String, bool, Option<i64>, Option<i32>);
    let row: Option<Row> = sqlx::query_as(
        "select id, tenant_id, provider_code, is_active, sales_id, max_per_minute from public.ingestion_providers
         where ingestion_key_hash = $1",
    )
    .bind(&key_hash[..])
    .fetch_optional(&mut *conn)
    .await?;
    let Some((id, tenant_id, code, is_active, sales_id, max_per_minute)) = row else { return Ok(None) };
    let (id, tenant_id) = (ChannelId(id), TenantId(tenant_id));
    let Some(secrets) = secrets(conn, vault, tenant_id, id).await? else { return Ok(None) };
    Ok(Some(Opened {
        id,
        tenant_id,
        provider: code.parse()?,
        is_active,
        person_id: sales_id.map(PersonId),
        max_per_minute,
        secrets,
    }))
}

/// What opens a channel, for its owner to see again; none: no such channel, or it has no secrets.
pub async fn secrets(
    conn: &mut PgConnection,
    vault: &Vault,
    tenant_id: TenantId,
    id: ChannelId,
) -> Result<Option<Secrets>> {
    let Some(sealed) = vault.get(conn, tenant_id, id.0).await? else { return Ok(None) };
    let secrets = serde_json::from_str(sealed.reveal());
    // Without the parser's words: they quote what they read.
    secrets.map(Some).map_err(|_| Error::Refused { what: format!("the secrets of channel {id} cannot be read") })
}

/// `false`: no such channel, or it has no secrets. A channel with a short secret is not enabled.
pub async fn set_active(
    conn: &mut PgConnection,
    vault: &Vault,
    tenant_id: TenantId,
    id: ChannelId,
    is_active: bool,
) -> Result<bool> {
    if is_active {
        match secrets(conn, vault, tenant_id, id).await? {
            Some(secrets) => check(&secrets)?,
            None => return Ok(false),
        }
    }
    let changed = sqlx::query("update public.ingestion_providers set is_active = $3 where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(is_active)
        .execute(conn)
        .await?;
    Ok(changed.rows_affected() == 1)
}

/// Closes the door for good. Its activities, and what was remembered of them, stay. `false`: no such channel.
pub async fn delete(conn: &mut PgConnection, vault: &Vault, tenant_id: TenantId, id: ChannelId) -> Result<bool> {
    let deleted = sqlx::query("delete from public.ingestion_providers where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id.0)
        .execute(&mut *conn)
        .await?;
    if deleted.rows_affected() == 0 {
        return Ok(false);
    }
    vault.remove(conn, tenant_id, id.0).await?;
    Ok(true)
}

fn check(secrets: &Secrets) -> Result<()> {
    let all = [&secrets.ingestion_key, &secrets.webhook_secret, &secrets.bearer];
    if all.iter().any(|secret| secret.reveal().chars().count() < SECRET_CHARS) {
        return Err(Error::Refused { what: format!("a webhook secret has at least {SECRET_CHARS} characters") });
    }
    Ok(())
}
