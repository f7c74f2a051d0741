//! The vault: other people's secrets, encrypted with a key that is not in the database.
//!
//! XChaCha20-Poly1305 with a random nonce. Tenant and row id are authenticated with the text, so a ciphertext that was moved to
//! another row or tenant cannot be decrypted. Each row names its master key. The first key seals and all of them open, so a new one is put in front
//! and the old one stays until every row is sealed again ([`Vault::reseal`]). Keys from a file are read again whenever the file has changed, so running
//! processes follow a rotation. A key that a rotation has retired seals nothing any more ([`retire`]).

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use domain::{Secret, TenantId, hex};
use rand::RngExt;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Error, Result, secret_file};

const NONCE_BYTES: usize = 24;

/// The master keys: the first one encrypts, all of them decrypt.
pub struct Vault {
    keys: RwLock<Arc<Keys>>,
    /// The file that the keys were read from.
    file: Option<PathBuf>,
}

struct Keys {
    list: Vec<(String, XChaCha20Poly1305)>,
    /// The state of the file when it was read.
    stamp: Option<Stamp>,
}

/// Changes with every change of a file: its inode, and when it was written.
type Stamp = (u64, i64, i64);

impl Keys {
    /// Parses the keys: one base64 key of 32 bytes per line or word, the newest first.
    fn parse(lines: &Secret, stamp: Option<Stamp>) -> Result<Self> {
        let list: Vec<_> = lines.reveal().split_whitespace().map(parse).collect::<Result<_>>()?;
        if list.is_empty() {
            return Err(Error::Refused {
                what: "the master key is empty; `head -c 32 /dev/urandom | base64` makes one".into(),
            });
        }
        Ok(Self { list, stamp })
    }

    fn read(path: &Path) -> Result<Self> {
        let stamp = stamp(path); // before the text: a change in between is noticed by the next look
        let text = std::fs::read_to_string(path).map_err(|error| unusable(path, &error))?;
        Self::parse(&Secret::new(text), stamp)
    }

    fn find(&self, key_id: &str) -> Option<&XChaCha20Poly1305> {
        self.list.iter().find(|(known, _)| known == key_id).map(|(_, cipher)| cipher)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|meta| (meta.ino(), meta.mtime(), meta.mtime_nsec()))
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    Error::Refused { what: format!("the master key file {} cannot be used: {error}", path.display()) }
}

/// A row of the vault: its tenant, and its own id.
pub type RowId = (Uuid, Uuid);

/// The outcome of one bite of a rotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    pub n: u64,
    /// Sealed with a key that is not here, or damaged.
    pub unreadable: u64,
    /// The last row that was looked at; none: there are no more.
    pub last: Option<RowId>,
}

/// The advisory lock of a rotation.
const LOCK: i64 = 0x7472_6962_726f_7461;

/// Whether this session may rotate the master key: until it ends, no other one does, and none takes a backup.
pub async fn lock_rotation(conn: &mut PgConnection) -> Result<bool> {
    Ok(sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(LOCK).fetch_one(conn).await?)
}

/// Prevents a rotation until this session ends, so that rows and keys can be copied one after the other. `false`: one runs.
pub async fn keep_keys(conn: &mut PgConnection) -> Result<bool> {
    Ok(sqlx::query_scalar("select pg_try_advisory_lock_shared($1)").bind(LOCK).fetch_one(conn).await?)
}

/// From the commit of this on, secrets that were sealed with these keys are not stored. A transaction that has stored one by then is older than a
/// [`moment`] after the commit.
pub async fn retire(conn: &mut PgConnection, key_ids: &[String]) -> Result<()> {
    let sql = "insert into tributary.retired_keys (key_id) select unnest($1::text[]) on conflict do nothing";
    sqlx::query(sql).bind(key_ids).execute(conn).await?;
    Ok(())
}

/// A key that was retired and is put in front again seals again.
pub async fn revive(conn: &mut PgConnection, key_id: &str) -> Result<()> {
    sqlx::query("delete from tributary.retired_keys where key_id = $1").bind(key_id).execute(conn).await?;
    Ok(())
}

/// Identifies every key that a stored secret is sealed with.
pub async fn keys_in_use(conn: &mut PgConnection) -> Result<Vec<String>> {
    let sql = "select distinct master_key_id from tributary.vault order by 1";
    Ok(sqlx::query_scalar(sql).fetch_all(conn).await?)
}

/// A moment in the order of transactions, for [`is_past`].
pub async fn moment(conn: &mut PgConnection) -> Result<i64> {
    Ok(sqlx::query_scalar("select pg_current_xact_id()::text::bigint").fetch_one(conn).await?)
}

/// Whether every transaction that wrote before a moment is over.
pub async fn is_past(conn: &mut PgConnection, moment: i64) -> Result<bool> {
    let sql = "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint > $1";
    Ok(sqlx::query_scalar(sql).bind(moment).fetch_one(conn).await?)
}

/// Both lists of keys in one, each key once, those of the first in front.
pub fn joined(keys: &Secret, more: &Secret) -> Secret {
    let mut lines: Vec<&str> = Vec::new();
    for key in keys.reveal().split_whitespace().chain(more.reveal().split_whitespace()) {
        if !lines.contains(&key) {
            lines.push(key);
        }
    }
    Secret::new(lines.iter().map(|key| format!("{key}\n")).collect::<String>())
}

/// Makes a new master key, as a line of the file.
pub fn new_key() -> Secret {
    Secret::new(STANDARD.encode(rand::rng().random::<[u8; 32]>()))
}

impl Vault {
    /// Parses the keys: one base64 key of 32 bytes per line, the newest first.
    pub fn new(lines: &Secret) -> Result<Self> {
        Ok(Self { keys: RwLock::new(Arc::new(Keys::parse(lines, None)?)), file: None })
    }

    /// Reads the key file of the data folder. It is created on first use, readable only by its owner.
    pub fn open_file(path: &Path) -> Result<Self> {
        if !path.exists() {
            let line = format!("{}\n", new_key().reveal());
            secret_file::create(path, &line).map_err(|error| unusable(path, &error))?;
        }
        Ok(Self { keys: RwLock::new(Arc::new(Keys::read(path)?)), file: Some(path.to_owned()) })
    }

    /// The keys as they are now.
    fn keys(&self) -> Arc<Keys> {
        let known = self.known();
        match self.file.as_deref().filter(|path| stamp(path) != known.stamp) {
            Some(path) => self.read_again(path),
            None => known,
        }
    }

    fn known(&self) -> Arc<Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the file again. One that cannot be read at the moment leaves the keys as they were.
    fn read_again(&self, path: &Path) -> Arc<Keys> {
        let known = self.known();
        match Keys::read(path) {
            Ok(mut new) => {
                // A key that the file no longer has goes on opening here: a row may have been read just before it was sealed again.
                let gone = known.list.iter().filter(|(id, _)| new.find(id).is_none()).cloned().collect::<Vec<_>>();
                new.list.extend(gone);
                let new = Arc::new(new);
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = new.clone();
                new
            }
            Err(error) => {
                tracing::warn!(error = %error, "the master key file has changed and cannot be read; the keys stay as they were");
                known
            }
        }
    }

    /// Identifies the key that seals, without revealing it.
    pub fn key_id(&self) -> String {
        self.keys().list[0].0.clone()
    }

    /// Identifies every key that opens, the one that seals first.
    pub fn key_ids(&self) -> Vec<String> {
        self.keys().list.iter().map(|(id, _)| id.clone()).collect()
    }

    /// The file of the keys; none: they came from the environment.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether secrets encrypted with that key can be decrypted.
    pub fn opens(&self, key_id: &str) -> bool {
        self.keys().find(key_id).is_some()
    }

    /// Returns the secret, sealed, and the id of the key.
    fn seal(&self, tenant_id: TenantId, id: Uuid, secret: &Secret) -> Result<(String, Vec<u8>)> {
        let nonce: [u8; NONCE_BYTES] = rand::rng().random();
        let aad = bound_to(tenant_id, id);
        let payload = Payload { msg: secret.reveal().as_bytes(), aad: &aad };
        let keys = self.keys();
        let (key_id, cipher) = &keys.list[0];
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| Error::Refused { what: "the secret could not be sealed".into() })?;
        Ok((key_id.clone(), [&nonce[..], &sealed].concat()))
    }

    fn unseal(&self, tenant_id: TenantId, id: Uuid, key_id: &str, sealed: &[u8]) -> Result<Secret> {
        let keys = self.keys();
        let Some(cipher) = keys.find(key_id) else {
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

    /// Seals a token that a client keeps and gives back, such as the cursor of a list. Nobody else can read, change or make one, and it opens for
    /// this tenant and purpose alone.
    pub fn seal_token(&self, tenant_id: TenantId, purpose: &str, token: &[u8]) -> Result<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = rand::rng().random();
        let aad = [tenant_id.0.as_bytes(), b"token:".as_slice(), purpose.as_bytes()].concat();
        let sealed = self.keys().list[0].1.encrypt(&XNonce::from(nonce), Payload { msg: token, aad: &aad });
        let sealed = sealed.map_err(|_| Error::Refused { what: "the token could not be sealed".into() })?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens a token. None: it was changed, or sealed for another tenant or purpose, or with a key that is gone.
    pub fn open_token(&self, tenant_id: TenantId, purpose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.split_at_checked(NONCE_BYTES)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
        let aad = [tenant_id.0.as_bytes(), b"token:".as_slice(), purpose.as_bytes()].concat();
        let open =
            |cipher: &XChaCha20Poly1305| cipher.decrypt(&XNonce::from(nonce), Payload { msg: text, aad: &aad }).ok();
        self.keys().list.iter().find_map(|(_, cipher)| open(cipher))
    }

    /// Stores or replaces a secret under the given id, in a transaction of the caller's: an error takes it back.
    pub async fn put(&self, conn: &mut PgConnection, tenant_id: TenantId, id: Uuid, secret: &Secret) -> Result<()> {
        let mut key_id = self.put_sealed(conn, tenant_id, id, secret).await?;
        // A statement of its own, after the row is written: either it sees that the key was retired, or the rotation that retires it waits for this
        // transaction and seals the row again.
        let mut is_refused = is_retired(conn, &key_id).await?;
        if let Some(path) = self.file.as_deref().filter(|_| is_refused) {
            self.read_again(path);
            key_id = self.put_sealed(conn, tenant_id, id, secret).await?;
            is_refused = is_retired(conn, &key_id).await?;
        }
        if is_refused { Err(retired(&key_id)) } else { Ok(()) }
    }

    /// Whether a secret can be stored now. Asked before something is done whose result must be stored.
    pub async fn check_seals(&self, conn: &mut PgConnection) -> Result<()> {
        let mut is_refused = is_retired(conn, &self.key_id()).await?;
        if let Some(path) = self.file.as_deref().filter(|_| is_refused) {
            self.read_again(path);
            is_refused = is_retired(conn, &self.key_id()).await?;
        }
        if is_refused { Err(retired(&self.key_id())) } else { Ok(()) }
    }

    async fn put_sealed(
        &self,
        conn: &mut PgConnection,
        tenant_id: TenantId,
        id: Uuid,
        secret: &Secret,
    ) -> Result<String> {
        let (key_id, sealed) = self.seal(tenant_id, id, secret)?;
        sqlx::query(
            "insert into tributary.vault (id, tenant_id, master_key_id, sealed) values ($1, $2, $3, $4)
             on conflict (tenant_id, id) do update set master_key_id = excluded.master_key_id, sealed = excluded.sealed, created_at = now()",
        )
        .bind(id)
        .bind(tenant_id.0)
        .bind(&key_id)
        .bind(sealed)
        .execute(conn)
        .await?;
        Ok(key_id)
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

    /// Seals the secrets among the next `limit` ones that have another key than the first. A row that another transaction changes is waited for.
    pub async fn reseal(&self, conn: &mut PgConnection, after: Option<RowId>, limit: i64) -> Result<Resealed> {
        let (after_tenant, after_id) = after.unwrap_or_default();
        let next: Vec<RowId> = sqlx::query_as(
            "select tenant_id, id from tributary.vault where (tenant_id, id) > ($1, $2) order by tenant_id, id limit $3",
        )
        .bind(after_tenant)
        .bind(after_id)
        .bind(limit)
        .fetch_all(&mut *conn)
        .await?;
        let Some(last) = next.last().copied() else { return Ok(Resealed::default()) };
        let old: Vec<(Uuid, Uuid, String, Vec<u8>)> = sqlx::query_as(
            "select tenant_id, id, master_key_id, sealed from tributary.vault
             where (tenant_id, id) > ($1, $2) and (tenant_id, id) <= ($3, $4) and master_key_id <> $5 order by tenant_id, id for update",
        )
        .bind(after_tenant)
        .bind(after_id)
        .bind(last.0)
        .bind(last.1)
        .bind(self.key_id())
        .fetch_all(&mut *conn)
        .await?;
        let mut resealed = Resealed { last: Some(last), ..Resealed::default() };
        let (mut tenants, mut ids, mut key_ids, mut texts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (tenant_id, id, key_id, sealed) in old {
            let Ok(secret) = self.unseal(TenantId(tenant_id), id, &key_id, &sealed) else {
                resealed.unreadable += 1;
                continue;
            };
            let (key_id, sealed) = self.seal(TenantId(tenant_id), id, &secret)?;
            tenants.push(tenant_id);
            ids.push(id);
            key_ids.push(key_id);
            texts.push(sealed);
        }
        resealed.n = ids.len() as u64;
        sqlx::query(
            "update tributary.vault v set master_key_id = n.key_id, sealed = n.sealed
             from unnest($1::uuid[], $2::uuid[], $3::text[], $4::bytea[]) n (tenant_id, id, key_id, sealed)
             where v.tenant_id = n.tenant_id and v.id = n.id",
        )
        .bind(tenants)
        .bind(ids)
        .bind(key_ids)
        .bind(texts)
        .execute(conn)
        .await?;
        Ok(resealed)
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

fn retired(key_id: &str) -> Error {
    let what = format!(
        "master key {key_id} was retired by a rotation, so nothing is sealed with it; start this process with the present master key, or run \
         `tributary key rotate-master` to use this one again"
    );
    Error::Refused { what }
}

async fn is_retired(conn: &mut PgConnection, key_id: &str) -> Result<bool> {
    let sql = "select exists (select from tributary.retired_keys where key_id = $1)";
    Ok(sqlx::query_scalar(sql).bind(key_id).fetch_one(conn).await?)
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

    #[test]
    fn a_token_opens_for_its_tenant_and_purpose_and_only_as_it_was_made() {
        let (ours, theirs) = (TenantId(Uuid::from_u128(1)), TenantId(Uuid::from_u128(2)));
        let sealed = vault(&[1]).seal_token(ours, "search", b"page 2").expect("sealed");
        let open = |keys: &[u8], tenant, purpose, sealed: &[u8]| vault(keys).open_token(tenant, purpose, sealed);
        assert_eq!(open(&[1], ours, "search", &sealed).as_deref(), Some(b"page 2".as_slice()));
        assert!(open(&[2, 1], ours, "search", &sealed).is_some(), "after a rotation of the master key");
        let changed = |nth: usize| {
            let mut sealed = sealed.clone();
            sealed[nth] ^= 1;
            sealed
        };
        for (what, opened) in [
            ("another tenant's", open(&[1], theirs, "search", &sealed)),
            ("another purpose", open(&[1], ours, "list", &sealed)),
            ("another key", open(&[2], ours, "search", &sealed)),
            ("cut", open(&[1], ours, "search", &sealed[..sealed.len() - 1])),
            ("nothing", open(&[1], ours, "search", &[])),
            ("a changed nonce", open(&[1], ours, "search", &changed(0))),
            ("a changed text", open(&[1], ours, "search", &changed(NONCE_BYTES))),
            ("a changed tag", open(&[1], ours, "search", &changed(sealed.len() - 1))),
        ] {
            assert_eq!(opened, None, "{what}");
        }
    }

    fn vault(bytes: &[u8]) -> Vault {
        let lines: Vec<String> = bytes.iter().map(|byte| STANDARD.encode([*byte; 32])).collect();
        Vault::new(&Secret::new(lines.join("\n"))).expect("keys")
    }

    /// S24.
    #[test]
    fn a_secret_opens_only_in_its_row_and_tenant() {
        let (vault, tenant, id) = (vault(&[1]), TenantId::new(), Uuid::now_v7());
        let (key_id, sealed) = vault.seal(tenant, id, &Secret::new("hunter2")).expect("seals");
        let open = |tenant, id, sealed: &[u8]| vault.unseal(tenant, id, &key_id, sealed).map(|s| s.reveal().to_owned());
        assert_eq!(open(tenant, id, &sealed).expect("opens"), "hunter2");
        assert!(open(TenantId::new(), id, &sealed).is_err());
        assert!(open(tenant, Uuid::now_v7(), &sealed).is_err());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(tenant, id, &changed).is_err(), "byte {at} was changed unnoticed");
        }
    }

    /// S24.
    #[test]
    fn an_old_key_still_opens_and_an_unknown_one_is_named() {
        let (old, rotated, other) = (vault(&[1]), vault(&[2, 1]), vault(&[3]));
        let (tenant, id) = (TenantId::new(), Uuid::now_v7());
        let (key_id, sealed) = old.seal(tenant, id, &Secret::new("s")).expect("seals");
        assert!(rotated.unseal(tenant, id, &key_id, &sealed).is_ok());
        assert_ne!(rotated.key_id(), old.key_id());
        let refused = other.unseal(tenant, id, &key_id, &sealed).expect_err("no such key").to_string();
        assert!(refused.contains(&key_id), "{refused}");
    }

    #[test]
    fn joined_lists_have_each_key_once_and_the_first_one_seals() {
        let lines = |bytes: &[u8]| {
            let lines: Vec<String> = bytes.iter().map(|byte| STANDARD.encode([*byte; 32])).collect();
            Secret::new(lines.join(" \n\n"))
        };
        let all = Vault::new(&joined(&lines(&[3, 1]), &lines(&[1, 2, 3]))).expect("keys");
        assert_eq!(all.key_ids(), vault(&[3, 1, 2]).key_ids());
        assert_eq!(joined(&lines(&[1]), &Secret::new("")).reveal(), format!("{}\n", STANDARD.encode([1_u8; 32])));
    }

    #[test]
    fn a_file_that_changes_is_read_again_and_what_it_had_still_opens() {
        let path = std::env::temp_dir().join(format!("tributary-keys-{}", Uuid::now_v7()));
        let vault = Vault::open_file(&path).expect("a new key");
        let (tenant, id, secret) = (TenantId::new(), Uuid::now_v7(), Secret::new("s"));
        let (old, sealed) = vault.seal(tenant, id, &secret).expect("seals");
        secret_file::replace(&path, new_key().reveal()).expect("replaced");
        let (new, _) = vault.seal(tenant, id, &secret).expect("seals");
        assert_ne!(new, old, "the running process did not notice the new key");
        assert!(vault.unseal(tenant, id, &old, &sealed).is_ok(), "a row that was read before cannot be opened");
        // A process that starts now has the new key alone.
        assert!(!Vault::open_file(&path).expect("keys").opens(&old));
        std::fs::write(&path, "half a key").expect("damaged");
        assert_eq!(vault.seal(tenant, id, &secret).expect("seals").0, new, "a damaged file took the keys away");
        std::fs::remove_file(&path).expect("removed");
    }
}
