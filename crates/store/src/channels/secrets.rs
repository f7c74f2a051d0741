//! A channel's secrets: one sealed row of the vault under the channel's id. The channel's own row has only the hash of its key.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::{ChannelId, Secret, TenantId};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use sqlx::PgConnection;

use crate::keys::hash;
use crate::vault::Vault;
use crate::{Error, Result};

/// A channel's secrets. Shown to its owner, never listed.
#[derive(Clone, Debug, Deserialize)]
pub struct Secrets {
    /// The last part of the channel's URL.
    pub ingestion_key: Secret,
    #[serde(flatten)]
    pub proofs: Proofs,
    /// The proofs before the last rotation, if there was one.
    #[serde(default)]
    pub retiring: Option<Retiring>,
}

/// The secrets that a sender shows or signs with, by name. The channel's provider says which names there are.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Proofs {
    /// Keys that a sender names by their id in each request.
    #[serde(default)]
    pub shared_keys: BTreeMap<String, Secret>,
    #[serde(flatten, deserialize_with = "present")]
    named: BTreeMap<String, Secret>,
}

/// Proofs that stay valid for a while after a rotation.
#[derive(Clone, Debug, Deserialize)]
pub struct Retiring {
    #[serde(flatten)]
    pub proofs: Proofs,
    pub until: DateTime<Utc>,
}

/// A name whose value is null has no secret.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Secret>, D::Error> {
    let all = BTreeMap::<String, Option<Secret>>::deserialize(from)?;
    Ok(all.into_iter().filter_map(|(name, secret)| Some((name, secret?))).collect())
}

impl Proofs {
    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.named.get(name)
    }

    pub fn set(&mut self, name: &str, secret: Secret) {
        self.named.insert(name.to_owned(), secret);
    }

    /// The same with one more.
    #[must_use]
    pub fn with(mut self, name: &str, secret: impl Into<Option<Secret>>) -> Self {
        if let Some(secret) = secret.into() {
            self.set(name, secret);
        }
        self
    }

    fn to_json(&self) -> Map<String, Value> {
        let texts = |of: &BTreeMap<String, Secret>| -> Map<String, Value> {
            of.iter().map(|(name, secret)| (name.clone(), secret.reveal().into())).collect()
        };
        let mut all = texts(&self.named);
        all.insert("shared_keys".into(), texts(&self.shared_keys).into());
        all
    }
}

impl Secrets {
    pub(super) fn sealed(&self) -> Secret {
        let mut all = self.proofs.to_json();
        all.insert("ingestion_key".into(), self.ingestion_key.reveal().into());
        if let Some(retiring) = &self.retiring {
            let mut old = retiring.proofs.to_json();
            old.insert("until".into(), json!(retiring.until));
            all.insert("retiring".into(), old.into());
        }
        Secret::new(Value::from(all).to_string())
    }

    fn unsealed(sealed: &Secret) -> Option<Self> {
        serde_json::from_str(sealed.reveal()).ok()
    }
}

/// The secrets of a channel. None: there is no such channel, or it has no secrets.
pub async fn secrets(
    conn: &mut PgConnection,
    vault: &Vault,
    tenant_id: TenantId,
    id: ChannelId,
) -> Result<Option<Secrets>> {
    let Some(sealed) = vault.get(conn, tenant_id, id.0).await? else { return Ok(None) };
    // Without the parser's own message: it quotes what it read.
    let unreadable = || Error::Refused { what: format!("the secrets of channel {id} cannot be read") };
    Secrets::unsealed(&sealed).map(Some).ok_or_else(unreadable)
}

/// Replaces the secrets of a channel that the caller has locked (`channels::lock`), and so the URL where the ingestion key is new.
pub async fn replace_secrets(
    conn: &mut PgConnection,
    vault: &Vault,
    tenant_id: TenantId,
    id: ChannelId,
    secrets: &Secrets,
) -> Result<()> {
    sqlx::query("update public.ingestion_providers set ingestion_key_hash = $3 where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(&hash(&secrets.ingestion_key)[..])
        .execute(&mut *conn)
        .await?;
    vault.put(conn, tenant_id, id.0, &secrets.sealed()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_as_they_were_sealed() {
        let old = Proofs::default().with("bearer", Secret::new("before"));
        let mut proofs = Proofs::default().with("bearer", Secret::new("now")).with("basic", None);
        proofs.shared_keys.insert("key_1".into(), Secret::new("shared"));
        let until = DateTime::from_timestamp(1_800_000_000, 0).expect("a time");
        let sealed =
            Secrets { ingestion_key: Secret::new("key"), proofs, retiring: Some(Retiring { proofs: old, until }) }
                .sealed();
        let read = Secrets::unsealed(&sealed).expect("secrets");
        assert_eq!((read.ingestion_key.reveal(), read.proofs.named.len()), ("key", 1));
        assert_eq!(read.proofs.get("bearer").map(Secret::reveal), Some("now"));
        assert_eq!(read.proofs.shared_keys["key_1"].reveal(), "shared");
        let retiring = read.retiring.expect("the old ones");
        assert_eq!((retiring.until, retiring.proofs.get("bearer").map(Secret::reveal)), (until, Some("before")));
    }

    #[test]
    fn rows_sealed_with_a_null_for_each_missing_secret_are_read() {
        let sealed = r#"{"ingestion_key":"k","webhook_secret":null,"bearer":null,"auth_token":"t","shared_keys":{},"basic":null}"#;
        let read = Secrets::unsealed(&Secret::new(sealed)).expect("secrets");
        assert_eq!((read.proofs.get("auth_token").map(Secret::reveal), read.proofs.named.len()), (Some("t"), 1));
        assert!(read.proofs.get("bearer").is_none() && read.retiring.is_none());
        for unreadable in ["", "{}", r#"{"ingestion_key":7}"#, r#"{"ingestion_key":"k","bearer":{}}"#] {
            assert!(Secrets::unsealed(&Secret::new(unreadable)).is_none(), "{unreadable:?}");
        }
    }
}
