//! Channels: each is one URL for somebody's webhooks. A channel's activities and documents outlive it.

mod refusals;
mod secrets;

use chrono::{DateTime, Utc};
use domain::{ChannelId, PersonId, TenantId};
use serde::{Deserialize, Serialize};
use sqlx::{FromRow as _, PgConnection, Row as _};
use uuid::Uuid;

pub use refusals::{NewRefusal, Refusal, Refusing, add_refusals, refusals, refusing};
pub use secrets::{Proofs, Retiring, Secrets, replace_secrets, secrets};

use crate::keys::{hash, new_secret};
use crate::vault::Vault;
use crate::{OnConstraint as _, Result};

/// A channel to create.
pub struct NewChannel<'a> {
    pub provider_code: &'a str,
    pub name: &'a str,
    /// Verified requests a minute; none: no limit.
    pub max_per_minute: Option<i32>,
    /// The owner of its activities; none: they are everyone's.
    pub person_id: Option<PersonId>,
    pub auto_create_contacts: bool,
    pub settings: Settings,
    pub proofs: Proofs,
}

/// Settings of verification by address, for providers with known addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Whether the address, or basic auth, must be right. `false`: a proxy hides addresses, and the URL alone is the secret.
    pub require_ip: bool,
    /// Networks that requests come from; none: those that the provider publishes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Vec<String>>,
    /// Of a channel that has no URL: the mailbox whose letters are its events, and which of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { require_ip: true, ranges: None, source_id: None, query: None }
    }
}

/// A channel as its owner sees it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Channel {
    pub id: Uuid,
    pub provider_code: String,
    pub name: String,
    pub is_active: bool,
    pub max_per_minute: Option<i32>,
    /// The owner of its activities; none: they are everyone's.
    #[sqlx(rename = "sales_id")]
    pub person_id: Option<i64>,
    pub auto_create_contacts: bool,
    #[sqlx(rename = "config", json)]
    pub settings: Settings,
    pub created_at: DateTime<Utc>,
}

/// A channel with its secrets, as the intake needs it.
#[derive(Clone, Debug)]
pub struct Opened {
    pub tenant_id: TenantId,
    pub channel: Channel,
    pub secrets: Secrets,
}

/// Two channels of a tenant cannot have one name.
const NAME_KEY: &str = "ingestion_providers_name_key";
const IS_NAMED: &str = "a channel has that name already";

/// Creates a channel, the source of its documents, and its secrets.
pub async fn create(
    conn: &mut PgConnection,
    vault: &Vault,
    tenant_id: TenantId,
    new: NewChannel<'_>,
) -> Result<(ChannelId, Secrets)> {
    let secrets = Secrets { ingestion_key: new_secret(""), proofs: new.proofs, retiring: None };
    let id = ChannelId::new();
    sqlx::query("insert into public.connected_sources (id, tenant_id, provider, name) values ($1, $2, 'channel', $3)")
        .bind(id.0)
        .bind(tenant_id.0)
        .bind(new.name)
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "insert into public.ingestion_providers
             (id, tenant_id, provider_code, name, ingestion_key_hash, max_per_minute, sales_id, auto_create_contacts, config)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id.0)
    .bind(tenant_id.0)
    .bind(new.provider_code)
    .bind(new.name)
    .bind(&hash(&secrets.ingestion_key)[..])
    .bind(new.max_per_minute)
    .bind(new.person_id.map(|person| person.0))
    .bind(new.auto_create_contacts)
    .bind(sqlx::types::Json(&new.settings))
    .execute(&mut *conn)
    .await
    .on_constraint(NAME_KEY, IS_NAMED)?;
    vault.put(conn, tenant_id, id.0, &secrets.sealed()).await?;
    Ok((id, secrets))
}

const COLUMNS: &str =
    "id, provider_code, name, is_active, max_per_minute, sales_id, auto_create_contacts, config, created_at";

/// The channels of a tenant, newest first.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Channel>> {
    let sql = format!(
        "select {COLUMNS} from public.ingestion_providers where tenant_id = $1 order by created_at desc, id desc"
    );
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant_id.0).fetch_all(conn).await?)
}

pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, id: ChannelId) -> Result<Option<Channel>> {
    let sql = format!("select {COLUMNS} from public.ingestion_providers where tenant_id = $1 and id = $2");
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant_id.0).bind(id.0).fetch_optional(conn).await?)
}

/// The channel whose ingestion key has this hash, with its secrets. None if its tenant is being forgotten.
pub async fn find(conn: &mut PgConnection, vault: &Vault, key_hash: &[u8; 32]) -> Result<Option<Opened>> {
    let sql = format!(
        "select tenant_id, {COLUMNS} from public.ingestion_providers p where ingestion_key_hash = $1
             and not exists (select from public.tenants t where t.id = p.tenant_id and t.forgetting_at is not null)"
    );
    let row: Option<(Uuid, Channel)> = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(&key_hash[..])
        .try_map(|row: sqlx::postgres::PgRow| Ok((row.try_get("tenant_id")?, Channel::from_row(&row)?)))
        .fetch_optional(&mut *conn)
        .await?;
    let Some((tenant_id, channel)) = row else { return Ok(None) };
    let tenant_id = TenantId(tenant_id);
    let secrets = secrets(conn, vault, tenant_id, ChannelId(channel.id)).await?;
    Ok(secrets.map(|secrets| Opened { tenant_id, channel, secrets }))
}

/// Locks a channel's row: its secrets are read, changed and sealed again by one transaction at a time.
pub async fn lock(conn: &mut PgConnection, tenant_id: TenantId, id: ChannelId) -> Result<()> {
    sqlx::query("select from public.ingestion_providers where tenant_id = $1 and id = $2 for update")
        .bind(tenant_id.0)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Enables or disables a channel. `false`: there is no such channel.
pub async fn set_active(conn: &mut PgConnection, tenant_id: TenantId, id: ChannelId, is_active: bool) -> Result<bool> {
    let changed = sqlx::query("update public.ingestion_providers set is_active = $3 where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(is_active)
        .execute(conn)
        .await?;
    Ok(changed.rows_affected() == 1)
}

/// Changes to a channel; none: as it was.
#[derive(Clone, Debug, Default)]
pub struct ChannelChange {
    pub name: Option<String>,
    /// Verified requests a minute; `Some(None)`: no limit.
    pub max_per_minute: Option<Option<i32>>,
    /// The owner of its events from now on; `Some(None)`: they are everyone's.
    pub person_id: Option<Option<PersonId>>,
    pub auto_create_contacts: Option<bool>,
    pub settings: Option<Settings>,
    /// Of a channel on a mailbox: the letters that are its events from now on.
    pub query: Option<String>,
}

/// Changes a channel. `false`: there is no such channel.
pub async fn change(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: ChannelId,
    change: ChannelChange,
) -> Result<bool> {
    let changed = sqlx::query(
        "with named as (
             update public.connected_sources set name = $3 where $3 is not null and tenant_id = $1 and id = $2 and provider = 'channel')
         update public.ingestion_providers set name = coalesce($3, name), auto_create_contacts = coalesce($4, auto_create_contacts),
             config = case when not config ? 'source_id' then coalesce($5, config)
                 when $10::text is not null then config || jsonb_build_object('query', $10::text) else config end,
             max_per_minute = case when $6 then $7 else max_per_minute end,
             sales_id = case when $8 then $9 else sales_id end
         where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(change.name)
    .bind(change.auto_create_contacts)
    .bind(change.settings.map(sqlx::types::Json))
    .bind(change.max_per_minute.is_some())
    .bind(change.max_per_minute.flatten())
    .bind(change.person_id.is_some())
    .bind(change.person_id.flatten().map(|person| person.0))
    .bind(change.query)
    .execute(conn)
    .await
    .on_constraint(NAME_KEY, IS_NAMED)?;
    Ok(changed.rows_affected() == 1)
}

/// Deletes a channel and its secrets. Its activities and documents stay. `false`: there is no such channel.
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
