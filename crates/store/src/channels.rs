//! Channels: one door each for somebody's webhooks. Its key and secrets are one sealed row of the vault under the channel's id;
//! the table has only the key's hash. What a channel brought outlives it.

use std::collections::BTreeMap;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use domain::{ChannelId, PersonId, Secret, TenantId};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{FromRow as _, PgConnection, Row as _};
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
    Twilio,
    Postmark,
}

impl Provider {
    pub const ALL: [Self; 3] = [Self::Generic, Self::Twilio, Self::Postmark];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Twilio => "twilio",
            Self::Postmark => "postmark",
        }
    }

    /// Verified requests a minute when nobody says otherwise. Senders of generic webhooks honour Retry-After, so a limit loses nothing; the
    /// others would lose or delay the event.
    pub fn usual_limit(self) -> Option<i32> {
        (self == Self::Generic).then_some(100)
    }
}

impl FromStr for Provider {
    type Err = Error;
    fn from_str(code: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|provider| provider.as_str() == code);
        known.ok_or_else(|| Error::Refused {
            what: format!("{code:?} is no provider of webhooks; there are generic, twilio and postmark"),
        })
    }
}

pub struct NewChannel<'a> {
    pub provider: Provider,
    pub name: &'a str,
    /// Verified requests a minute; none: no limit.
    pub max_per_minute: Option<i32>,
    /// Who owns what it brings; none: everyone's work.
    pub person_id: Option<PersonId>,
    pub auto_create_contacts: bool,
    pub settings: Settings,
    /// What the sender signs with: a generic sender's own secret (made here when not given), Twilio's auth token.
    pub secret: Option<Secret>,
}

/// What is no secret about how a channel verifies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Postmark: whether the address, or basic auth, must be right. `false`: addresses are hidden by a proxy, the URL alone is the secret.
    pub require_ip: bool,
    /// Postmark: networks its requests come from; none: those Postmark publishes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Vec<String>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { require_ip: true, ranges: None }
    }
}

/// What opens a channel. Shown to its owner, never listed. Which of them there are depends on the provider.
#[derive(Clone, Debug, Deserialize)]
pub struct Secrets {
    /// The last part of the channel's URL.
    pub ingestion_key: Secret,
    #[serde(flatten)]
    pub proofs: Proofs,
    /// Those before the last rotation, good for a while.
    #[serde(default)]
    pub retiring: Option<Retiring>,
}

/// What a sender shows or signs with.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Proofs {
    /// Generic: signs bodies.
    #[serde(default)]
    pub webhook_secret: Option<Secret>,
    /// Generic: sent as it is.
    #[serde(default)]
    pub bearer: Option<Secret>,
    /// Twilio: the account's primary auth token.
    #[serde(default)]
    pub auth_token: Option<Secret>,
    /// Twilio: secrets of shared keys by their id.
    #[serde(default)]
    pub shared_keys: BTreeMap<String, Secret>,
    /// Postmark: `user:password` of basic auth.
    #[serde(default)]
    pub basic: Option<Secret>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Retiring {
    #[serde(flatten)]
    pub proofs: Proofs,
    pub until: DateTime<Utc>,
}

impl Proofs {
    fn make(provider: Provider, given: Option<Secret>) -> Result<Self> {
        Ok(match provider {
            Provider::Generic => Self {
                webhook_secret: Some(given.unwrap_or_else(new_webhook_secret)),
                bearer: Some(new_secret("ak_live_")),
                ..Self::default()
            },
            Provider::Twilio => Self { auth_token: given, ..Self::default() },
            Provider::Postmark if given.is_some() => {
                return Err(Error::Refused {
                    what: "Postmark signs nothing: its user and password are made here".into(),
                });
            }
            Provider::Postmark => {
                Self { basic: Some(Secret::new(format!("postmark:{}", new_secret("").reveal()))), ..Self::default() }
            }
        })
    }

    /// What it takes to be open: nothing unset, empty or short.
    fn check(&self, provider: Provider) -> Result<()> {
        let needed: &[(&str, &Option<Secret>)] = match provider {
            Provider::Generic => &[("webhook secret", &self.webhook_secret), ("bearer key", &self.bearer)],
            Provider::Twilio => &[("Twilio auth token", &self.auth_token)],
            Provider::Postmark => &[("basic auth password", &self.basic)],
        };
        let shared = self.shared_keys.values().map(|secret| ("shared key", Some(secret)));
        for (what, secret) in needed.iter().map(|(what, secret)| (*what, secret.as_ref())).chain(shared) {
            let chars = secret.map_or(0, |secret| secret.reveal().trim().chars().count());
            if chars < SECRET_CHARS {
                let what = format!("the {what} has {chars} characters; at least {SECRET_CHARS} are needed");
                return Err(Error::Refused { what });
            }
        }
        Ok(())
    }

    fn to_json(&self) -> serde_json::Value {
        let text = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.reveal().to_owned());
        let shared: BTreeMap<&str, &str> =
            self.shared_keys.iter().map(|(id, secret)| (&**id, secret.reveal())).collect();
        json!({
            "webhook_secret": text(&self.webhook_secret), "bearer": text(&self.bearer), "auth_token": text(&self.auth_token),
            "shared_keys": shared, "basic": text(&self.basic),
        })
    }
}

impl Secrets {
    fn sealed(&self) -> Secret {
        let mut all = self.proofs.to_json();
        all["ingestion_key"] = self.ingestion_key.reveal().into();
        if let Some(retiring) = &self.retiring {
            let mut old = retiring.proofs.to_json();
            old["until"] = json!(retiring.until);
            all["retiring"] = old;
        }
        Secret::new(all.to_string())
    }
}

/// In the form of Standard Webhooks, which other senders take as plain text.
fn new_webhook_secret() -> Secret {
    Secret::new(format!("whsec_{}", STANDARD.encode(rand::rng().random::<[u8; 32]>())))
}

/// A channel as its owner sees it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Channel {
    pub id: Uuid,
    pub provider_code: String,
    pub name: String,
    pub is_active: bool,
    pub max_per_minute: Option<i32>,
    /// Whose work its events are; none: everyone's.
    #[sqlx(rename = "sales_id")]
    pub person_id: Option<i64>,
    pub auto_create_contacts: bool,
    #[sqlx(rename = "config", json)]
    pub settings: Settings,
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
    pub auto_create_contacts: bool,
    pub settings: Settings,
    pub secrets: Secrets,
}

fn checked_name(name: &str) -> Result<&str> {
    let name = name.trim();
    let is_plain = (1..=100).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    let refused = || Error::Refused { what: "a channel's name has 1 to 100 characters on one line".into() };
    if is_plain { Ok(name) } else { Err(refused()) }
}

/// Makes a channel, the source of its documents, and its secrets.
pub async fn create(
    conn: &mut PgConnection,
    vault: &Vault,
    tenant_id: TenantId,
    new: NewChannel<'_>,
) -> Result<(ChannelId, Secrets)> {
    let name = checked_name(new.name)?;
    let proofs = Proofs::make(new.provider, new.secret)?;
    proofs.check(new.provider)?;
    let secrets = Secrets { ingestion_key: new_secret(""), proofs, retiring: None };
    let id = ChannelId::new();
    sqlx::query("insert into public.connected_sources (id, tenant_id, provider, name) values ($1, $2, 'channel', $3)")
        .bind(id.0)
        .bind(tenant_id.0)
        .bind(name)
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "insert into public.ingestion_providers
             (id, tenant_id, provider_code, name, ingestion_key_hash, max_per_minute, sales_id, auto_create_contacts, config)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id.0)
    .bind(tenant_id.0)
    .bind(new.provider.as_str())
    .bind(name)
    .bind(&hash(&secrets.ingestion_key)[..])
    .bind(new.max_per_minute)
    .bind(new.person_id.map(|person| person.0))
    .bind(new.auto_create_contacts)
    .bind(sqlx::types::Json(&new.settings))
    .execute(&mut *conn)
    .await?;
    vault.put(conn, tenant_id, id.0, &secrets.sealed()).await?;
    Ok((id, secrets))
}

const COLUMNS: &str =
    "id, provider_code, name, is_active, max_per_minute, sales_id, auto_create_contacts, config, created_at";

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

/// The channel whose key has this hash, with what opens it.
pub async fn find(conn: &mut PgConnection, vault: &Vault, key_hash: &[u8; 32]) -> Result<Option<Opened>> {
    let sql = format!("select tenant_id, {COLUMNS} from public.ingestion_providers where ingestion_key_hash = $1");
    let row: Option<(Uuid, Channel)> = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(&key_hash[..])
        .try_map(|row: sqlx::postgres::PgRow| Ok((row.try_get("tenant_id")?, Channel::from_row(&row)?)))
        .fetch_optional(&mut *conn)
        .await?;
    let Some((tenant_id, channel)) = row else { return Ok(None) };
    let (id, tenant_id) = (ChannelId(channel.id), TenantId(tenant_id));
    let Some(secrets) = secrets(conn, vault, tenant_id, id).await? else { return Ok(None) };
    let provider = channel.provider_code.parse()?;
    Ok(Some(Opened {
        id,
        tenant_id,
        provider,
        // Whatever happened to its secrets: with an empty or short one nobody gets in.
        is_active: channel.is_active && secrets.proofs.check(provider).is_ok(),
        person_id: channel.person_id.map(PersonId),
        max_per_minute: channel.max_per_minute,
        auto_create_contacts: channel.auto_create_contacts,
        settings: channel.settings,
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
        let Some(channel) = get(conn, tenant_id, id).await? else { return Ok(false) };
        match secrets(conn, vault, tenant_id, id).await? {
            Some(secrets) => secrets.proofs.check(channel.provider_code.parse()?)?,
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

/// Whoever changes secrets does so alone: they are read, changed and sealed again.
async fn lock(conn: &mut PgConnection, tenant_id: TenantId, id: ChannelId) -> Result<()> {
    sqlx::query("select from public.ingestion_providers where tenant_id = $1 and id = $2 for update")
        .bind(tenant_id.0)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// What to make anew.
pub struct Rotation {
    /// Twilio's new auth token, or a generic sender's own new secret.
    pub secret: Option<Secret>,
    /// Also a new URL; the old one is closed at once.
    pub is_url_too: bool,
    /// Until when the old secrets are good.
    pub until: DateTime<Utc>,
}

/// Makes new secrets for a channel; the old ones are good until then. `None`: no such channel, or it has no secrets.
pub async fn rotate(
    conn: &mut PgConnection,
    vault: &Vault,
    tenant_id: TenantId,
    id: ChannelId,
    rotation: Rotation,
) -> Result<Option<Secrets>> {
    lock(conn, tenant_id, id).await?;
    let Some(channel) = get(conn, tenant_id, id).await? else { return Ok(None) };
    let Some(old) = secrets(conn, vault, tenant_id, id).await? else { return Ok(None) };
    let provider = channel.provider_code.parse()?;
    let mut proofs = Proofs::make(provider, rotation.secret)?;
    if provider == Provider::Twilio && proofs.auth_token.is_none() {
        if !rotation.is_url_too {
            let what = "Twilio's new auth token is Twilio's to make: give it, or ask for a new URL".into();
            return Err(Error::Refused { what });
        }
        proofs.auth_token = old.proofs.auth_token.clone();
    }
    proofs.shared_keys = old.proofs.shared_keys.clone();
    proofs.check(provider)?;
    let ingestion_key = if rotation.is_url_too { new_secret("") } else { old.ingestion_key };
    let retiring = Some(Retiring { proofs: old.proofs, until: rotation.until });
    let new = Secrets { ingestion_key, proofs, retiring };
    sqlx::query("update public.ingestion_providers set ingestion_key_hash = $3 where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(&hash(&new.ingestion_key)[..])
        .execute(&mut *conn)
        .await?;
    vault.put(conn, tenant_id, id.0, &new.sealed()).await?;
    Ok(Some(new))
}

/// Adds, or with no secret removes, a shared key that Twilio signs with. `false`: no such channel.
pub async fn set_shared_key(
    conn: &mut PgConnection,
    vault: &Vault,
    tenant_id: TenantId,
    id: ChannelId,
    key_id: &str,
    secret: Option<Secret>,
) -> Result<bool> {
    lock(conn, tenant_id, id).await?;
    let Some(channel) = get(conn, tenant_id, id).await? else { return Ok(false) };
    let Some(mut secrets) = secrets(conn, vault, tenant_id, id).await? else { return Ok(false) };
    if channel.provider_code != Provider::Twilio.as_str() {
        return Err(Error::Refused { what: "only Twilio signs with shared keys".into() });
    }
    let keys = &mut secrets.proofs.shared_keys;
    match secret {
        Some(secret) => drop(keys.insert(key_id.to_owned(), secret)),
        None if keys.remove(key_id).is_none() => {
            return Err(Error::Refused { what: format!("the channel has no shared key {key_id:?}") });
        }
        None => {}
    }
    secrets.proofs.check(channel.provider_code.parse()?)?;
    vault.put(conn, tenant_id, id.0, &secrets.sealed()).await?;
    Ok(true)
}

/// What changes about a channel; none: as it was.
#[derive(Clone, Debug, Default)]
pub struct ChannelChange {
    pub name: Option<String>,
    /// Verified requests a minute; `Some(None)`: no limit.
    pub max_per_minute: Option<Option<i32>>,
    pub auto_create_contacts: Option<bool>,
    pub settings: Option<Settings>,
}

/// `false`: no such channel.
pub async fn change(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: ChannelId,
    change: ChannelChange,
) -> Result<bool> {
    let changed = sqlx::query(
        "update public.ingestion_providers set name = coalesce($3, name), auto_create_contacts = coalesce($4, auto_create_contacts),
             config = coalesce($5, config), max_per_minute = case when $6 then $7 else max_per_minute end
         where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(change.name.as_deref().map(checked_name).transpose()?)
    .bind(change.auto_create_contacts)
    .bind(change.settings.map(sqlx::types::Json))
    .bind(change.max_per_minute.is_some())
    .bind(change.max_per_minute.flatten())
    .execute(conn)
    .await?;
    Ok(changed.rows_affected() == 1)
}

/// What was refused at a channel, alike ones of one second together.
#[derive(Clone, Debug)]
pub struct NewRefusal {
    pub tenant_id: TenantId,
    pub channel_id: ChannelId,
    pub status: u16,
    pub reason: String,
    pub address: String,
    pub n: i32,
}

pub async fn add_refusals(conn: &mut PgConnection, refusals: &[NewRefusal]) -> Result<()> {
    sqlx::query(
        "insert into tributary.channel_refusals (tenant_id, channel_id, status, reason, address, n)
         select r.tenant_id, r.channel_id, r.status, r.reason, r.address, r.n
         from unnest($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::int[]) r (tenant_id, channel_id, status, reason, address, n)
         join public.tenants t on t.id = r.tenant_id",
    )
    .bind(refusals.iter().map(|refusal| refusal.tenant_id.0).collect::<Vec<_>>())
    .bind(refusals.iter().map(|refusal| refusal.channel_id.0).collect::<Vec<_>>())
    .bind(refusals.iter().map(|refusal| i32::from(refusal.status)).collect::<Vec<_>>())
    .bind(refusals.iter().map(|refusal| refusal.reason.as_str()).collect::<Vec<_>>())
    .bind(refusals.iter().map(|refusal| refusal.address.as_str()).collect::<Vec<_>>())
    .bind(refusals.iter().map(|refusal| refusal.n).collect::<Vec<_>>())
    .execute(conn)
    .await?;
    Ok(())
}

/// Why something was rejected, as the channel's owner sees it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Refusal {
    pub status: i32,
    pub reason: String,
    pub address: Option<String>,
    pub n: i32,
    pub created_at: DateTime<Utc>,
}

pub async fn refusals(conn: &mut PgConnection, tenant_id: TenantId, id: ChannelId, limit: i64) -> Result<Vec<Refusal>> {
    Ok(sqlx::query_as(
        "select status, reason, address, n, created_at from tributary.channel_refusals
         where tenant_id = $1 and channel_id = $2 order by created_at desc, id desc limit $3",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// Channels of a tenant that refused much of what came within the last ten minutes.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Refusing {
    pub channel_id: Uuid,
    pub name: String,
    pub n: i64,
    /// The commonest.
    pub reason: String,
}

pub async fn refusing(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    at_least: i64,
) -> Result<Vec<Refusing>> {
    Ok(sqlx::query_as(
        "select r.channel_id, p.name, sum(r.n)::int8 as n, mode() within group (order by r.reason) as reason
         from tributary.channel_refusals r join public.ingestion_providers p on p.tenant_id = r.tenant_id and p.id = r.channel_id
         where r.tenant_id = $1 and r.created_at > (select coalesce($2, now()) - interval '10 minutes') and p.is_active
         group by r.channel_id, p.name having sum(r.n) >= $3 order by n desc, p.name",
    )
    .bind(tenant_id.0)
    .bind(at)
    .bind(at_least)
    .fetch_all(conn)
    .await?)
}
