//! `tributary backup`: copies the database, the blobs and the necessary files into a folder while everything runs.
//!
//! The database is copied before the blobs, so that every referenced blob is there. The master key is not rotated meanwhile, so it opens what was
//! copied. backup.json is written last, so a folder without it is not a backup.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use domain::shown::bytes;
use domain::{Clock, Secret};
use engine::blobs::{Blobs, Copied};
use engine::database::{self, Database};
use engine::{Config, Env};
use serde::{Deserialize, Serialize};
use store::embedded::{Running, WAL};
use store::vault::{self, Vault};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::logging;

#[derive(clap::Args)]
pub struct Args {
    /// An empty folder, or one that does not exist yet.
    dir: PathBuf,
    /// Include the master key, which decrypts every stored token. Protect such a backup like the tokens themselves.
    #[arg(long)]
    with_master_key: bool,
    /// After the copy, keep the WAL in it until this is stopped, so that `restore --until` can go to any moment since. Run it again with the same folder
    /// to go on. Only for the embedded database.
    #[arg(long)]
    wal: bool,
    /// End the keeping of WAL for this folder, also if the folder is gone: the server holds none back for it any more. What the folder has stays good.
    #[arg(long, requires = "wal")]
    end: bool,
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

/// How often new blobs are copied while the WAL is kept, and the server is asked whether it keeps it.
const COPY_EVERY: Duration = Duration::from_secs(30);
/// How often the master key is looked at meanwhile. Rows that a rotation seals anew are in the WAL at once.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub const MANIFEST: &str = "backup.json";
pub const KEY: &str = "master.key";

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    logging::start(&config)?;
    let dir = std::path::absolute(&args.dir).context("the folder of the backup has no name")?;
    let is_empty = std::fs::read_dir(&dir).map_or(true, |mut entries| entries.next().is_none());
    let goes_on = args.wal && dir.join(MANIFEST).exists() && dir.join(WAL).exists();
    if args.wal && config.database_url.is_some() {
        bail!(
            "DATABASE_URL is your own server, which keeps its WAL itself\n\nhint: docs/deploy.md says how to keep it and how to go to a moment"
        );
    }
    if !is_empty && !goes_on && !args.end {
        bail!("{} is not empty\n\nhint: give each backup a folder of its own", dir.display());
    }
    if config.database_url.is_none() && !database::embedded(&config)?.has_cluster() {
        bail!(
            "there is nothing to back up in {}\n\nhint: set DATA_DIR to the folder of `up`",
            config.data_dir.display()
        );
    }
    let mut database = match goes_on && !args.end {
        true => running(&config).await,
        false => database::start(&config).await?,
    };
    let done = match args.end {
        true => end(&config, &database, &dir).await,
        false => take(&config, &mut database, &dir, &args, goes_on).await,
    };
    let released = database.release(&config).await;
    let code = done?;
    released?;
    Ok(code)
}

/// Waits for the server that `up` runs. A backup that goes on starts none: the server would end with it.
async fn running(config: &Config) -> Database {
    let mut is_told = false;
    loop {
        match database::find(config).await {
            Ok(database) => return database,
            Err(error) if !std::mem::replace(&mut is_told, true) => eprintln!("waiting for the server: {error:#}"),
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn take(
    config: &Config,
    database: &mut Database,
    dir: &Path,
    args: &Args,
    goes_on: bool,
) -> anyhow::Result<ExitCode> {
    let Some(running) = database.embedded.clone().filter(|_| args.wal) else {
        return Ok(print_end(dir, &write(config, database, dir, args).await?));
    };
    let (embedded, mut asked, mut code) = (database::embedded(config)?, Asked::listen()?, ExitCode::SUCCESS);
    if !goes_on {
        embedded.keep_wal(&running, dir).await?;
        let written = tokio::select! {
            written = write(config, database, dir, args) => written,
            () = asked.told_to_stop() => Err(anyhow::anyhow!("stopped before the backup was complete")),
        };
        if written.is_err() {
            let _ = embedded.drop_slot(&running, dir).await; // or the server would keep WAL for what is no backup
        }
        code = print_end(dir, &written?);
    }
    // The receiver waits for a server that is away, so `up` may stop it.
    database.leave();
    keep(config, database, &running, dir, args.with_master_key, asked).await?;
    Ok(code)
}

/// Lets the server drop what it keeps for this folder.
async fn end(config: &Config, database: &Database, dir: &Path) -> anyhow::Result<ExitCode> {
    let was_kept = match &database.embedded {
        Some(running) => database::embedded(config)?.end_wal(running, dir).await?,
        None => false,
    };
    match was_kept {
        true => println!("{}: the server keeps no more WAL for it", dir.display()),
        false => println!("{}: the server kept no WAL for it", dir.display()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Ctrl-C, or a service manager's SIGTERM.
struct Asked {
    interrupt: Signal,
    terminate: Signal,
}

impl Asked {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn told_to_stop(&mut self) {
        tokio::select! { _ = self.interrupt.recv() => {} _ = self.terminate.recv() => {} }
    }
}

/// Keeps WAL, new blobs and new master keys beside the copy until it is told to stop.
async fn keep(
    config: &Config,
    database: &Database,
    running: &Running,
    dir: &Path,
    with_master_key: bool,
    mut asked: Asked,
) -> anyhow::Result<()> {
    let (env, to) = (database.env(config)?, Blobs::in_folder(&dir.join("blobs")));
    let embedded = database::embedded(config)?;
    embedded.check_kept(running, dir).await?;
    let mut receiver = embedded.receive_wal(running, dir).await?;
    eprintln!(
        "keeping the WAL in {}; stop it with Ctrl-C and run it again to go on, or with --end to end it for good",
        dir.join(WAL).display()
    );
    let mut looked_at = Instant::now();
    loop {
        let mut pause = LOOK_EVERY;
        if let Err(error) = keep_keys(&env, dir, with_master_key) {
            eprintln!("the master key could not be kept, which is tried again: {error:#}");
            pause = COPY_EVERY;
        }
        tokio::select! {
            error = receiver.ended() => return Err(error.into()),
            () = asked.told_to_stop() => break,
            () = tokio::time::sleep(pause) => {}
        }
        if looked_at.elapsed() < COPY_EVERY {
            continue;
        }
        match embedded.check_kept(running, dir).await {
            Err(error) if !error.is_passing() => return Err(error.into()),
            Err(_) => {} // the server is away, and the receiver waits for it
            Ok(()) if receiver.is_misled(running) => {
                receiver.stop().await?;
                receiver = embedded.receive_wal(running, dir).await?;
            }
            Ok(()) => {}
        }
        if let Err(fault) = env.blobs.copy_new(&to).await {
            eprintln!("new blobs could not be copied, which is tried again: {}", fault.in_words());
        }
        looked_at = Instant::now();
    }
    if let Err(error) = embedded.wait_received(running, dir).await {
        eprintln!("the last of the WAL may be missing: {error}");
    }
    receiver.stop().await?;
    keep_keys(&env, dir, with_master_key)?;
    let copied = env.blobs.copy_new(&to).await;
    copied.map_err(|fault| anyhow::anyhow!("the blobs could not be copied: {}", fault.in_words()))?;
    Ok(())
}

/// Adds the keys in force to those of the backup, if it has any or shall have them. A rotation seals rows anew, and older moments need the older keys.
fn keep_keys(env: &Env, dir: &Path, is_wanted: bool) -> anyhow::Result<()> {
    let path = dir.join(KEY);
    let kept = read_key(&path)?;
    if kept.is_none() && !is_wanted {
        return Ok(());
    }
    let in_force = key_in_force(env)?;
    Vault::new(&in_force)?; // a file that somebody is writing is not taken
    let all = match &kept {
        Some(kept) => vault::joined(&in_force, kept),
        None => in_force,
    };
    if kept.is_some_and(|kept| kept.reveal() == all.reveal()) {
        return Ok(());
    }
    store::secret_file::replace(&path, all.reveal()).with_context(|| format!("{} cannot be written", path.display()))
}

/// The keys in a file; none: there is no such file.
pub fn read_key(path: &Path) -> anyhow::Result<Option<Secret>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(Secret::new(text))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

async fn write(config: &Config, database: &Database, dir: &Path, args: &Args) -> anyhow::Result<(Manifest, Copied)> {
    let env = database.env(config)?;
    let mut conn = env.db.acquire().await?;
    let Some(schema) = store::migrate::version(&mut conn).await? else {
        bail!("the database has not been set up\n\nhint: run `tributary migrate`");
    };
    // Both until this session ends, which is when everything is copied.
    store::blobs::keep_all(&mut conn).await?;
    if !vault::keep_keys(&mut conn).await? {
        bail!(
            "the master key is being rotated\n\nhint: wait until `tributary key rotate-master` has ended, then back up again"
        );
    }
    let postgres = match &database.embedded {
        Some(running) => {
            let embedded = database::embedded(config)?;
            eprintln!("database: copying {}", embedded.cluster_dir().display());
            embedded.back_up(running, dir, |how_far| eprintln!("database: {how_far}")).await?;
            if args.wal {
                embedded.make_wal_folder(dir)?;
            }
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
    if args.with_master_key {
        let path = dir.join(KEY);
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
        has_master_key: args.with_master_key,
        master_key_id: env.vault.key_id(),
    };
    // The session that has kept files and keys in place is still the same one, or this fails.
    let is_kept =
        vault::keep_keys(&mut conn).await.context("the database went away while it was copied; back up again")?;
    ensure!(is_kept, "the master key is being rotated\n\nhint: back up again when it is done");
    seal(dir, &manifest).with_context(|| format!("{} cannot be written", dir.join(MANIFEST).display()))?;
    conn.discard();
    Ok((manifest, copied))
}

fn key_in_force(env: &Env) -> anyhow::Result<Secret> {
    if let Some(keys) = env.config.master_keys() {
        return Ok(keys);
    }
    let path = env.config.data_dir.join(KEY);
    read_key(&path)?.with_context(|| format!("{} is missing", path.display()))
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

fn print_end(dir: &Path, (manifest, copied): &(Manifest, Copied)) -> ExitCode {
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
    for name in &copied.damaged {
        eprintln!("blob {name} was damaged before this backup and is not in it");
    }
    if copied.damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
