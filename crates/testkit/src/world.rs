//! A test's world: its own database, its clock, and the environment in which the engine runs.

use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use clap::Parser;
use domain::{Caller, Clock, Scope, Secret, TenantId};
use engine::lanes;
use engine::lanes::read_file::ReadFile;
use engine::lanes::recognise::Recognise;
use engine::work::{Lane as _, LaneEntry, Runtime};
use engine::{Config, Env};
use store::vault::Vault;
use store::{Db, keys, tenants};

use crate::cluster::{self, Database};

#[derive(Parser)]
struct Settings {
    #[command(flatten)]
    config: Config,
}

/// Settings as flags would set them: `config(&["--lane-slots", "1"])`. The embedder is `fast` unless a flag names one.
pub fn config(flags: &[&str]) -> Config {
    let embedder: &[&str] = if flags.contains(&"--embedder") { &[] } else { &["--embedder", "fast"] };
    let reader = reader();
    let is_told = flags.iter().any(|flag| flag.starts_with("--transcribe"));
    let transcribe: &[&str] = if is_told { &[] } else { &["--transcribe", "off"] };
    Settings::parse_from([&["test"], transcribe, embedder, &["--reader-program", &reader], flags].concat()).config
}

/// The built program, which reads files: a test program of its own does not. It is beside the folder of test programs; if nobody has built it, every file is
/// unreadable.
fn reader() -> String {
    let own = std::env::current_exe().unwrap_or_default();
    let built = own.parent().and_then(Path::parent).map(|folder| folder.join("tributary")).unwrap_or_default();
    if built.is_file() { built.display().to_string() } else { "/bin/false".into() }
}

pub struct World {
    pub database: Database,
    pub env: Env,
    pub tenant_id: TenantId,
}

impl World {
    /// A cloned database and a clock that stands at noon until the test moves it.
    pub async fn new() -> Self {
        let noon = DateTime::parse_from_rfc3339("2026-11-15T12:00:00Z").expect("a time").with_timezone(&Utc);
        Self::with(cluster::cloned(), Clock::fixed(noon)).await
    }

    /// A cloned database and the system clock, for tests with real processes.
    pub async fn now() -> Self {
        Self::with(cluster::cloned(), Clock::System).await
    }

    pub async fn with(database: Database, clock: Clock) -> Self {
        Self::with_flags(database, clock, &[]).await
    }

    /// The same with further settings.
    pub async fn with_flags(database: Database, clock: Clock, flags: &[&str]) -> Self {
        let vault = Vault::new(&Secret::new("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")).expect("a key");
        let db = Db::lazy(&database.login, 8, Duration::from_secs(10));
        let config = config(&[&["--worker-heartbeat-secs", "1", "--blob-url", cluster::blob_url()], flags].concat());
        let env = Env::new(db, config, clock, vault).expect("an environment");
        let mut conn = env.db.acquire().await.expect("a connection");
        let tenant_id = tenants::ensure_operator(&mut conn).await.expect("a tenant");
        Self { database, env, tenant_id }
    }

    pub async fn conn(&self) -> store::Connection {
        self.env.db.acquire().await.expect("a connection")
    }

    /// A session of the login role itself, which may end the sessions of other processes.
    pub async fn login_conn(&self) -> sqlx::PgConnection {
        <sqlx::PgConnection as sqlx::Connection>::connect(&self.database.url).await.expect("a connection")
    }

    /// A caller who operates this installation.
    pub async fn operator(&self) -> Caller {
        self.caller(self.tenant_id, &[Scope::Service]).await.0
    }

    /// A new key of a tenant's, and the caller it stands for.
    pub async fn caller(&self, tenant_id: TenantId, scopes: &[Scope]) -> (Caller, Secret) {
        let mut conn = self.conn().await;
        let (_, secret) = keys::create(&mut conn, tenant_id, None, "test", scopes).await.expect("a key");
        let caller = keys::authenticate(&mut conn, &secret).await.expect("an answer").expect("a caller");
        (caller, secret)
    }

    pub async fn other_tenant(&self, name: &str) -> TenantId {
        let mut conn = self.conn().await;
        tenants::create(&mut conn, name).await.expect("a tenant")
    }

    /// Runs these lanes until nothing is due by the test's clock. Returns how many items ran.
    pub async fn run_lanes(&self, list: &'static [LaneEntry]) -> usize {
        // Files are read by processes of their own, which tests of the program start. Here they wait.
        let is_reader = |lane: &LaneEntry| [ReadFile::NAME, Recognise::NAME].contains(&lane.name);
        let list = &list[..list.iter().position(is_reader).unwrap_or(list.len())];
        let runtime = Runtime::new(self.env.clone(), list, &[]);
        Box::pin(runtime.run_due()).await.expect("lanes that run") // boxed: it is large, and tests' stacks are small
    }

    pub async fn run_upkeep(&self) -> usize {
        self.run_lanes(&lanes::ALL).await
    }
}

/// Looks every 20 ms until the condition is true; false when `limit` has passed. Tests wait with this and never for a length of time.
pub async fn wait_until(limit: Duration, mut is_true: impl AsyncFnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if is_true().await {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Looks every 20 ms whether the condition is still true; false at the first time it is not. For things that must not happen: the
/// length is the time in which they would.
pub async fn stays_true(length: Duration, mut is_true: impl AsyncFnMut() -> bool) -> bool {
    !wait_until(length, async || !is_true().await).await
}
