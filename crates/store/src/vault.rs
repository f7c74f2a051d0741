//! The vault: other people's secrets, encrypted with a key that is not in the database.
//!
//! XChaCha20-Poly1305 with a random nonce. Tenant and row id are authenticated with the text, so a ciphertext that was moved to
//! another row or tenant cannot be decrypted. Each row names its master key: rotation adds a new key in front and keeps the old
//! ones for reading.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use domain::{Secret, TenantId, hex};
use rand::RngExt;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Error, Result};

const NONCE_BYTES: usize = 24;

/// The master keys: the first one encrypts, all of them decrypt.
pub struct Vault {
    keys: Vec<(String, XChaCha20Poly1305)>,
}

impl Vault {
    /// Parses the keys: one base64 key of 32 bytes per line, the newest first.
    pub fn new(lines: &Secret) -> Result<Self> {
        let keys: Vec<_> =
            lines.reveal().lines().map(str::trim).filter(|line| !line.is_empty()).map(parse).collect::<Result<_>>()?;
        if keys.is_empty() {
            return Err(Error::Refused {
                what: "the master key is empty; `head -c 32 /dev/urandom | base64` makes one".into(),
            });
        }
        Ok(Self { keys })
    }

    /// Reads the key file of the data folder. It is created on first use, readable only by its owner.
    pub fn open_file(path: &Path) -> Result<Self> {
        let told = |error: std::io::Error| Error::Refused {
            what: format!("the master key file {} cannot be used: {error}", path.display()),
        };
        if !path.exists() {
            let line = format!("{}\n", STANDARD.encode(rand::rng().random::<[u8; 32]>()));
            crate::secret_file::create(path, &line).map_err(told)?;
        }
        Self::new(&Secret::new(std::fs::read_to_string(path).map_err(told)?))
    }

    /// Identifies a key without revealing it.
    pub fn key_id(&self) -> &str {
        &self.keys[0].0
    }

    /// Whether secrets encrypted with that key can be decrypted.
    pub fn opens(&self, key_id: &str) -> bool {
        self.keys.iter().any(|(known, _)| known == key_id)
    }

    fn seal(&self, tenant_id: TenantId, id: Uuid, secret: &Secret) -> Result<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = rand::rng().random();
        let aad = bound_to(tenant_id, id);
        let payload = Payload { msg: secret.reveal().as_bytes(), aad: &aad };
        let sealed = self.keys[0].1.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| Error::Refused { what: "the secret could not be sealed".into() })?;
        Ok([&nonce[..], &sealed].concat())
    }

    fn unseal(&self, tenant_id: TenantId, id: Uuid, key_id: &str, sealed: &[u8]) -> Result<Secret> {
        let Some((_, cipher)) = self.keys.iter().find(|(known, _)| known == key_id) else {
            let what = format!(
                "a secret was sealed with master key {key_id}, which is not here; add that key to the master key file"
            );
            return Err(Error::Refused { what });
        };
        let broken = || Error::Refused {
            what: "a sealed secret does not open: it was changed, or moved from another row".into(),
        };
        let (nonce, text) = sealed.split_at_checked(NONCE_BYTES).ok_or_else(broken)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| broken())?;
        let aad = bound_to(tenant_id, id);
        let opened = cipher.decrypt(&XNonce::from(nonce), Payload { msg: text, aad: &aad }).map_err(|_| broken())?;
        String::from_utf8(opened).map(Secret::new).map_err(|_| broken())
    }

    /// Stores or replaces a secret under the given id.
    pub async fn put(&self, conn: &mut PgConnection, tenant_id: TenantId, id: Uuid, secret: &Secret) -> Result<()> {
        let sealed = self.seal(tenant_id, id, secret)?;
        sqlx::query(
            "insert into tributary.vault (id, tenant_id, master_key_id, sealed) values ($1, $2, $3, $4)
             on conflict (tenant_id, id) do update set master_key_id = excluded.master_key_id, sealed = excluded.sealed, created_at = now()",
        )
        .bind(id)
        .bind(tenant_id.0)
        .bind(self.key_id())
        .bind(sealed)
        .execute(conn)
        .await?;
        Ok(())
    }

    pub async fn get(&self, conn: &mut PgConnection, tenant_id: TenantId, id: Uuid) -> Result<Option<Secret>> {
        let row: Option<(String, Vec<u8>)> =
            sqlx::query_as("select master_key_id, sealed from tributary.vault where tenant_id = $1 and id = $2")
                .bind(tenant_id.0)
                .bind(id)
                .fetch_optional(conn)
                .await?;
        row.map(|(key_id, sealed)| self.unseal(tenant_id, id, &key_id, &sealed)).transpose()
    }

    pub async fn remove(&self, conn: &mut PgConnection, tenant_id: TenantId, id: Uuid) -> Result<()> {
        sqlx::query("delete from tributary.vault where tenant_id = $1 and id = $2")
            .bind(tenant_id.0)
            .bind(id)
            .execute(conn)
            .await?;
        Ok(())
    }
}

fn parse(line: &str) -> Result<(String, XChaCha20Poly1305)> {
    let key: [u8; 32] =
        STANDARD.decode(line).ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| Error::Refused {
            what: "a master key must be 32 bytes in base64; `head -c 32 /dev/urandom | base64` makes one".into(),
        })?;
    let id = Sha256::digest([b"tributary master key id ", &key[..]].concat());
    Ok((hex::encode(&id[..4]), XChaCha20Poly1305::new(&key.into())))
}

fn bound_to(tenant_id: TenantId, id: Uuid) -> [u8; 32] {
    let mut aad = [0; 32];
    aad[..16].copy_from_slice(tenant_id.0.as_bytes());
    aad[16..].copy_from_slice(id.as_bytes());
    aad
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(bytes: &[u8]) -> Vault {
        let lines: Vec<String> = bytes.iter().map(|byte| STANDARD.encode([*byte; 32])).collect();
        Vault::new(&Secret::new(lines.join("\n"))).expect("keys")
    }

    #[test]
    fn a_secret_opens_only_in_its_row_and_tenant() {
        let (vault, tenant, id) = (vault(&[1]), TenantId::new(), Uuid::now_v7());
        let sealed = vault.seal(tenant, id, &Secret::new("hunter2")).expect("seals");
        let open =
            |tenant, id, sealed: &[u8]| vault.unseal(tenant, id, vault.key_id(), sealed).map(|s| s.reveal().to_owned());
        assert_eq!(open(tenant, id, &sealed).expect("opens"), "hunter2");
        assert!(open(TenantId::new(), id, &sealed).is_err());
        assert!(open(tenant, Uuid::now_v7(), &sealed).is_err());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(tenant, id, &changed).is_err(), "byte {at} was changed unnoticed");
        }
    }

    #[test]
    fn an_old_key_still_opens_and_an_unknown_one_is_named() {
        let (old, rotated, other) = (vault(&[1]), vault(&[2, 1]), vault(&[3]));
        let (tenant, id) = (TenantId::new(), Uuid::now_v7());
        let sealed = old.seal(tenant, id, &Secret::new("s")).expect("seals");
        assert!(rotated.unseal(tenant, id, old.key_id(), &sealed).is_ok());
        assert_ne!(rotated.key_id(), old.key_id());
        let refused = other.unseal(tenant, id, old.key_id(), &sealed).expect_err("no such key").to_string();
        assert!(refused.contains(old.key_id()), "{refused}");
    }
}
