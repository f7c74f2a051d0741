//! `tributary backup`: copies the database, the blobs and the necessary files into a folder while everything runs.
//!
//! The database is copied before the blobs, so that every referenced blob is there. backup.json is written last, so a folder without it is
//! not a backup.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::shown::bytes;
use domain::{Clock, Secret};
use engine::blobs::{Blobs, Copied};
use engine::database::{self, Database};
use engine::{Config, Env};
use serde::{Deserialize, Serialize};

use crate::logging;

#[derive(clap::Args)]
pub struct Args {
    /// An empty folder, or one that does not exist yet.
    dir: PathBuf,
    /// Include the master key, which decrypts every stored token. Protect such a backup like the tokens themselves.
    #[arg(long)]
    with_master_key: bool,
}

/// The content of backup.json.
#[derive(Serialize, Deserialize)]
pub struct Manifest {
    /// The version of tributary.
    pub version: String,
    pub schema: i32,
    pub taken_at: chrono::DateTime<chrono::Utc>,
    /// The major version of the embedded server; `None` if the database was not copied.
    pub postgres: Option<String>,
    pub postgres_bytes: u64,
    /// The number of blobs. Each is a file `blobs/{tenant}/{sha256}`, so its name verifies its bytes.
    pub blobs: u64,
    pub blob_bytes: u64,
    pub has_master_key: bool,
    /// Identifies the key that encrypts the tokens, without revealing it.
    pub master_key_id: String,
}

pub const MANIFEST: &str = "backup.json";

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    logging::start(&config)?;
    let dir = std::path::absolute(&args.dir).context("the folder of the backup has no name")?;
    let is_empty = std::fs::read_dir(&dir).map_or(true, |mut entries| entries.next().is_none());
    if !is_empty {
        bail!("{} is not empty\n\nhint: give each backup a folder of its own", dir.display());
    }
    if config.database_url.is_none() && !database::embedded(&config)?.has_cluster() {
        bail!(
            "there is nothing to back up in {}\n\nhint: set DATA_DIR to the folder of `up`",
            config.data_dir.display()
        );
    }
    let database = database::start(&config).await?;
    let done = write(&config, &database, &dir, args.with_master_key).await;
    let released = database.release(&config).await;
    let (manifest, copied) = done?;
    released?;
    print_end(&dir, &manifest);
    if copied.damaged.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for name in &copied.damaged {
        eprintln!("blob {name} was damaged before this backup and is not in it");
    }
    Ok(ExitCode::FAILURE)
}

async fn write(
    config: &Config,
    database: &Database,
    dir: &Path,
    with_master_key: bool,
) -> anyhow::Result<(Manifest, Copied)> {
    let env = database.env(config)?;
    let mut conn = env.db.acquire().await?;
    let Some(schema) = store::migrate::version(&mut conn).await? else {
        bail!("the database has not been set up\n\nhint: run `tributary migrate`");
    };
    store::blobs::keep_all(&mut conn).await?; // until this session ends, with this command
    let postgres = match &database.embedded {
        Some(running) => {
            let embedded = database::embedded(config)?;
            eprintln!("database: copying {}", embedded.cluster_dir().display());
            embedded.back_up(running, dir, |how_far| eprintln!("database: {how_far}")).await?;
            Some(embedded.version().await?)
        }
        None => {
            eprintln!("database: not in this backup; DATABASE_URL is yours to back up, at this time or earlier");
            std::fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
            None
        }
    };
    let postgres_bytes = bytes_below(&dir.join("postgres"));
    eprintln!("blobs: copying");
    let copied = env.blobs.copy_all(&Blobs::in_folder(&dir.join("blobs"))).await;
    let copied = copied.map_err(|fault| anyhow::anyhow!("the blobs could not be copied: {}", fault.in_words()))?;
    if with_master_key {
        let path = dir.join("master.key");
        store::secret_file::create(&path, key_in_force(&env)?.reveal())
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let manifest = Manifest {
        version: env!("CARGO_PKG_VERSION").into(),
        schema,
        taken_at: Clock::System.now(),
        postgres,
        postgres_bytes,
        blobs: copied.objects,
        blob_bytes: copied.bytes,
        has_master_key: with_master_key,
        master_key_id: env.vault.key_id().into(),
    };
    seal(dir, &manifest).with_context(|| format!("{} cannot be written", dir.join(MANIFEST).display()))?;
    Ok((manifest, copied))
}

fn key_in_force(env: &Env) -> anyhow::Result<Secret> {
    if let Some(key) = &env.config.master_key {
        return Ok(key.clone());
    }
    let path = env.config.data_dir.join("master.key");
    Ok(Secret::new(std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?))
}

/// Completes the backup: everything is synced, then renamed into place.
fn seal(dir: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let aside = dir.join("backup.json.new");
    let mut file = std::fs::File::create(&aside)?;
    file.write_all(serde_json::to_string_pretty(manifest)?.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&aside, dir.join(MANIFEST))?;
    Ok(std::fs::File::open(dir)?.sync_all()?)
}

fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

fn print_end(dir: &Path, manifest: &Manifest) {
    let database = match &manifest.postgres {
        Some(_) => format!("database {}", bytes(manifest.postgres_bytes)),
        None => "no database".into(),
    };
    println!(
        "{}: {database}, {} blobs {}, {}",
        dir.display(),
        manifest.blobs,
        bytes(manifest.blob_bytes),
        if manifest.has_master_key { "with the master key" } else { "without the master key" }
    );
    if !manifest.has_master_key {
        eprintln!(
            "\nWARNING: the master key (id {}) is not in this backup. Without it no stored token or channel secret can be read again.\n\
             Keep master.key somewhere else, or run this with --with-master-key.",
            manifest.master_key_id
        );
    }
}
