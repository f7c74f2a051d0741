//! Rotation of the master key: every secret in the vault is sealed again with a new key, while everything runs.
//!
//! The new key goes in front of the old one first. From then on every process seals with the new one and opens with both, because it reads the file again
//! when the file has changed. Then the old key is retired: a process that has sealed with it before it looked at the file seals again. When every
//! transaction from before that is over, a last look finds the rows that still have the old key, no row can get it any more, and it is taken out. A
//! crash at any point leaves every row readable, and the next run goes on.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use store::crash::{self, Point};
use store::{secret_file, vault};

use crate::Env;

/// Rows that one commit looks at.
const BITE: i64 = 500;
/// By then every process that was sealing a secret when the file changed has stored it, so that few of them have to seal again. Processes of the
/// previous release do not ask whether a key is retired: for them this is all there is.
const SETTLE: Duration = Duration::from_secs(2);
/// How long transactions that were open at that time are waited for.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The outcome of a rotation.
#[derive(Clone, Debug)]
pub struct Rotated {
    /// The key that seals now.
    pub key_id: String,
    pub n_resealed: u64,
    /// Rows that no key here opens. They stay as they are, and so do the keys.
    pub n_unreadable: u64,
    /// The file to which the old keys were moved; none: they are in the environment, or still needed.
    pub retired: Option<PathBuf>,
}

/// Rotates the master key, or goes on with a rotation that was interrupted. `told` hears how far it is.
pub async fn rotate_master(env: &Env, told: impl Fn(&str)) -> anyhow::Result<Rotated> {
    let db = env.db.sibling(1);
    let mut alone = db.acquire().await?;
    if !vault::lock_rotation(&mut alone).await? {
        bail!(
            "another `tributary key rotate-master` is running, or a backup is being taken\n\nhint: wait until it has ended"
        );
    }
    if env.vault.key_ids().len() == 1 {
        let Some(path) = env.vault.file() else {
            bail!(
                "MASTER_KEY comes from the environment, so this command cannot replace it\n\nhint: give every process the new key as MASTER_KEY \
                 and the present one as MASTER_KEY_OLD, then run this again; docs/deploy.md has the steps"
            );
        };
        put_in_front(path, vault::new_key().reveal())?;
        crash::at(Point::RotateKeyWritten)?;
    } else {
        told("two keys are there already: going on with the first one");
    }
    let key_id = env.vault.key_id();
    let old: Vec<String> = env.vault.key_ids().into_iter().filter(|id| *id != key_id).collect();
    vault::revive(&mut alone, &key_id).await?;
    told(&format!("sealing every secret with key {key_id}"));
    let (n_first, _) = reseal(env, &told).await?;
    tokio::time::sleep(SETTLE).await;
    vault::retire(&mut alone, &old).await?;
    let moment = vault::moment(&mut alone).await?;
    let begun = Instant::now();
    while !vault::is_past(&mut alone, moment).await? {
        if begun.elapsed() > PATIENCE {
            bail!(
                "a transaction that may have sealed with the old key is still open\n\nhint: run this again later; nothing is lost"
            );
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    // Those that were sealed with the old key before it was retired.
    let (n_later, n_unreadable) = reseal(env, &told).await?;
    let n_resealed = n_first + n_later;
    crash::at(Point::RotateResealed)?;
    let retired = match env.vault.file() {
        Some(path) if n_unreadable == 0 => Some(retire(env, path)?),
        _ => None,
    };
    drop(alone);
    db.close().await;
    tracing::info!(
        key_id,
        n_resealed,
        n_unreadable,
        "the master key was rotated: {n_resealed} secrets are sealed with key {key_id}"
    );
    Ok(Rotated { key_id, n_resealed, n_unreadable, retired })
}

/// Looks at every row once. Returns how many were sealed again, and how many no key here opens.
async fn reseal(env: &Env, told: &impl Fn(&str)) -> anyhow::Result<(u64, u64)> {
    let (mut after, mut n, mut unreadable) = (None, 0, 0);
    loop {
        let mut tx = env.db.begin().await?;
        let bite = env.vault.reseal(&mut tx, after, BITE).await?;
        if bite.n > 0 {
            crash::at(Point::RotateBeforeCommit)?;
        }
        tx.commit().await?;
        (n, unreadable, after) = (n + bite.n, unreadable + bite.unreadable, bite.last);
        if after.is_none() {
            return Ok((n, unreadable));
        }
        if bite.n > 0 {
            told(&format!("{n} sealed again"));
        }
    }
}

fn put_in_front(path: &Path, key: &str) -> anyhow::Result<()> {
    let old = read(path)?;
    secret_file::replace(path, &format!("{key}\n{old}"))
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Leaves the first key in the file, and moves the others to a file beside it: backups from before need them.
fn retire(env: &Env, path: &Path) -> anyhow::Result<PathBuf> {
    let text = read(path)?;
    let mut keys = text.split_whitespace();
    let newest = keys.next().context("the master key file is empty")?;
    let old: String = keys.map(|key| format!("{key}\n")).collect();
    let aside = path.with_file_name(format!("master.key.old-{}", env.clock.now().format("%Y%m%d-%H%M%S")));
    secret_file::create(&aside, &old).with_context(|| format!("{} cannot be written", aside.display()))?;
    secret_file::replace(path, &format!("{newest}\n"))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(aside)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}
