//! `tributary restore`: a backup into an empty data folder, checked before it counts. Nothing that is there is replaced.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use domain::shown::bytes;
use domain::{Clock, Secret};
use engine::blobs::Blobs;
use engine::{Config, database};
use store::vault::Vault;

use super::backup::{MANIFEST, Manifest};
use super::up;
use crate::logging;

#[derive(clap::Args)]
pub struct Args {
    /// The folder of the backup. It is brought into the data folder (DATA_DIR).
    dir: PathBuf,
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
            let restore = embedded.begin_restore().await?;
            check_key(&config, &dir, &manifest)?;
            eprintln!("database: copying {}", bytes(manifest.postgres_bytes));
            restore.cluster(&dir).await?;
            let is_whole = bring_files(&config, &dir, &manifest).await?;
            restore.finish()?;
            is_whole
        }
        None => {
            check_key(&config, &dir, &manifest)?;
            bring_files(&config, &dir, &manifest).await?
        }
    };
    print_end(&config, &manifest);
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(dir: &Path) -> anyhow::Result<Manifest> {
    let path = dir.join(MANIFEST);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(
            "{} is no backup, or one that was interrupted: it has no {MANIFEST}\n\nhint: use a backup that was finished",
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

/// A key that lies in the data folder stays, so it must be able to open what is restored.
fn check_key(config: &Config, dir: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let path = config.data_dir.join("master.key");
    if manifest.has_master_key && !dir.join("master.key").exists() {
        bail!("{} is damaged: master.key is missing", dir.display());
    }
    if let Ok(text) = std::fs::read_to_string(&path)
        && !Vault::new(&Secret::new(text))?.opens(&manifest.master_key_id)
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
async fn bring_files(config: &Config, dir: &Path, manifest: &Manifest) -> anyhow::Result<bool> {
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
    if manifest.has_master_key {
        let (from, to) = (dir.join("master.key"), config.data_dir.join("master.key"));
        let text = std::fs::read_to_string(&from).with_context(|| format!("{} cannot be read", from.display()))?;
        store::secret_file::create(&to, &text).with_context(|| format!("{} cannot be written", to.display()))?;
    }
    Ok(copied.damaged.is_empty() && copied.objects >= manifest.blobs)
}

fn print_end(config: &Config, manifest: &Manifest) {
    let what = match &manifest.postgres {
        Some(_) => format!("database (schema {}) and {} blobs", manifest.schema, manifest.blobs),
        None => format!("{} blobs; the database of DATABASE_URL is yours to restore", manifest.blobs),
    };
    println!("restored into {}: {what}", config.data_dir.display());
    let has_key =
        config.master_key.as_ref().and_then(|key| Vault::new(key).ok()).map(|key| key.opens(&manifest.master_key_id));
    if has_key.unwrap_or_else(|| config.data_dir.join("master.key").exists()) {
        eprintln!("start it with `tributary up`");
    } else {
        eprintln!(
            "\nWARNING: the master key (id {}) is not in this backup. Before `tributary up`, put it into {} or set MASTER_KEY;\n\
             without it no stored token or channel secret can be read.",
            manifest.master_key_id,
            config.data_dir.join("master.key").display()
        );
    }
}
