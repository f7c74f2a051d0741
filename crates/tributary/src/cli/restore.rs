//! `tributary restore`: a backup into an empty data folder, checked before it counts. Nothing that is there is replaced.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::Clock;
use domain::shown::bytes;
use engine::blobs::Blobs;
use engine::{Config, database};
use store::embedded::{Until, check_wal};
use store::vault::{self, Vault};

use super::backup::{KEY, MANIFEST, Manifest, read_key};
use super::up;
use crate::logging;

#[derive(clap::Args)]
pub struct Args {
    /// The folder of the backup. It is brought into the data folder (DATA_DIR).
    dir: PathBuf,
    /// Go to this moment, by the WAL that `backup --wal` has kept: a time with its zone, such as 2026-11-16T18:30:00Z, or `latest`. Left out: the end of the
    /// copy.
    #[arg(long)]
    until: Option<Until>,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    logging::start(&config)?;
    let dir = std::path::absolute(&args.dir).context("the folder of the backup has no name")?;
    let manifest = read(&dir)?;
    let Some(_lock) = up::lock(&config)? else {
        bail!(
            "`up` runs on {}\n\nhint: stop it with `tributary down`, and restore into an empty folder (DATA_DIR)",
            config.data_dir.display()
        );
    };
    eprintln!("restoring the backup of {} into {}", manifest.taken_at.to_rfc3339(), config.data_dir.display());
    // The keys that open what is restored.
    let mut key_ids = vec![manifest.master_key_id.clone()];
    let is_whole = match &manifest.postgres {
        Some(version) => {
            if config.database_url.is_some() {
                bail!("this backup holds an embedded database, and DATABASE_URL is set\n\nhint: unset DATABASE_URL");
            }
            let embedded = database::embedded(&config)?;
            let ours = embedded.version().await?;
            if ours != *version {
                bail!(
                    "this backup is of PostgreSQL {version}, and this is PostgreSQL {ours}\n\nhint: set PG_BIN_DIR to a PostgreSQL {version}"
                );
            }
            if args.until.is_some() {
                check_wal(&dir)?; // before everything is copied
            }
            let restore = embedded.begin_restore().await?;
            check_key(&config, &dir, &manifest, args.until)?;
            eprintln!("database: copying {}", bytes(manifest.postgres_bytes));
            restore.cluster(&dir).await?;
            if let Some(until) = args.until {
                eprintln!("database: going to the moment");
                key_ids = restore.recover(&dir, until, |how_far| eprintln!("database: {how_far}")).await?;
            }
            let is_whole = bring_files(&config, &dir, &manifest, &key_ids).await?;
            restore.finish()?;
            is_whole
        }
        None if args.until.is_some() => {
            bail!(
                "this backup has no database, so it has no moments\n\nhint: restore the database of DATABASE_URL to the moment yourself"
            )
        }
        None => {
            check_key(&config, &dir, &manifest, None)?;
            bring_files(&config, &dir, &manifest, &key_ids).await?
        }
    };
    print_end(&config, &manifest, &key_ids)?;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(dir: &Path) -> anyhow::Result<Manifest> {
    let path = dir.join(MANIFEST);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(
            "{} is not a backup, or is one that was interrupted: it has no {MANIFEST}\n\nhint: use a backup that was finished",
            dir.display()
        ),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    let manifest: Manifest =
        serde_json::from_str(&text).with_context(|| format!("{} is not what a backup writes", path.display()))?;
    let ours = store::migrate::wanted_version();
    if manifest.schema > ours {
        bail!(
            "this backup has schema {}, newer than this binary's {ours}\n\nhint: use tributary {} or newer",
            manifest.schema,
            manifest.version
        );
    }
    Ok(manifest)
}

/// A key that lies in the data folder stays, so it must be able to open what is restored. Which keys a later moment needs is known when it is reached.
fn check_key(config: &Config, dir: &Path, manifest: &Manifest, until: Option<Until>) -> anyhow::Result<()> {
    if manifest.has_master_key && !dir.join(KEY).exists() {
        bail!("{} is damaged: {KEY} is missing", dir.display());
    }
    let path = config.data_dir.join(KEY);
    if until.is_none()
        && let Some(keys) = read_key(&path)?
        && !Vault::new(&keys)?.opens(&manifest.master_key_id)
    {
        bail!(
            "{} is another key than the backup's ({})\n\nhint: move it away, or put the right one there",
            path.display(),
            manifest.master_key_id
        );
    }
    Ok(())
}

/// Blobs and the master key. Says what is missing; false when something is.
async fn bring_files(config: &Config, dir: &Path, manifest: &Manifest, key_ids: &[String]) -> anyhow::Result<bool> {
    eprintln!("blobs: copying {}", manifest.blobs);
    let to = Blobs::open(config, Clock::System)?;
    let copied = Blobs::in_folder(&dir.join("blobs")).copy_all(&to).await;
    let copied = copied.map_err(|fault| anyhow::anyhow!("the blobs could not be copied: {}", fault.in_words()))?;
    for name in &copied.damaged {
        eprintln!("blob {name} is damaged in this backup and was not restored");
    }
    if copied.objects < manifest.blobs {
        eprintln!("{} of {} blobs were restored; documents that name another show it", copied.objects, manifest.blobs);
    }
    bring_keys(config, dir, key_ids)?;
    Ok(copied.damaged.is_empty() && copied.objects >= manifest.blobs)
}

/// Brings the backup's keys, if it has any. A key that is here stays in front; if it does not open everything and the backup's do, they are added.
fn bring_keys(config: &Config, dir: &Path, key_ids: &[String]) -> anyhow::Result<()> {
    let to = config.data_dir.join(KEY);
    let Some(theirs) = read_key(&dir.join(KEY))? else { return Ok(()) };
    let brought = match read_key(&to)? {
        None => store::secret_file::create(&to, theirs.reveal()),
        Some(ours) => {
            let (known, kept) = (Vault::new(&ours)?, Vault::new(&theirs)?);
            match key_ids.iter().any(|id| !known.opens(id) && kept.opens(id)) {
                true => store::secret_file::replace(&to, vault::joined(&ours, &theirs).reveal()),
                false => Ok(()),
            }
        }
    };
    brought.with_context(|| format!("{} cannot be written", to.display()))
}

fn print_end(config: &Config, manifest: &Manifest, key_ids: &[String]) -> anyhow::Result<()> {
    let what = match &manifest.postgres {
        Some(_) => format!("database (schema {}) and {} blobs", manifest.schema, manifest.blobs),
        None => format!("{} blobs; the database of DATABASE_URL is yours to restore", manifest.blobs),
    };
    println!("restored into {}: {what}", config.data_dir.display());
    let path = config.data_dir.join(KEY);
    let keys = match config.master_keys() {
        Some(keys) => Some(keys),
        None => read_key(&path)?,
    };
    let known = keys.and_then(|keys| Vault::new(&keys).ok());
    let is_missing = |id: &&String| known.as_ref().is_none_or(|known| !known.opens(id));
    let missing: Vec<&str> = key_ids.iter().filter(is_missing).map(String::as_str).collect();
    if missing.is_empty() {
        eprintln!("start it with `tributary up`");
    } else {
        eprintln!(
            "\nWARNING: secrets in this backup are sealed with the master key {}, which is not here. Before `tributary up`, put it into\n\
             {}, one key per line, or set MASTER_KEY; without it no stored token or channel secret can be read.",
            missing.join(" and "),
            path.display()
        );
    }
    Ok(())
}
