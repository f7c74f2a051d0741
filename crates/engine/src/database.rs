//! Finding the database: the embedded one, or `DATABASE_URL`.

use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::Clock;
use store::embedded::{Embedded, Running, Users};
use store::migrate::{self, Applied};
use store::vault::Vault;
use store::{ConnectTo, Db, restored};

use crate::lanes;
use crate::{Config, Env};

/// The two ways to reach the database: with every right, for set-up, and as the pool does.
#[derive(Clone, Debug)]
pub struct Database {
    pub admin: ConnectTo,
    pub login: ConnectTo,
    pub embedded: Option<Running>,
    /// The data folder of the embedded server.
    folder: Option<Embedded>,
    users: Option<Users>,
}

/// The embedded server of this data folder.
pub fn embedded(config: &Config) -> anyhow::Result<Embedded> {
    Ok(Embedded::new(&config.data_dir, &config.pg_bin_dir)?)
}

/// `DATABASE_URL`, else the embedded server: started or adopted.
pub async fn start(config: &Config) -> anyhow::Result<Database> {
    if let Some(external) = external(config)? {
        return Ok(external);
    }
    let embedded = embedded(config)?;
    let running = embedded.start().await?;
    Database::of(&embedded, running)
}

/// `DATABASE_URL`, else the embedded server if it runs: commands that only look do not start one.
pub async fn find(config: &Config) -> anyhow::Result<Database> {
    if let Some(external) = external(config)? {
        return Ok(external);
    }
    let embedded = embedded(config)?;
    match embedded.find().await? {
        Some(running) => Database::of(&embedded, running),
        None => bail!(
            "no server runs on {}\n\nhint: start it with `tributary up`, or set DATABASE_URL",
            config.data_dir.display()
        ),
    }
}

fn external(config: &Config) -> anyhow::Result<Option<Database>> {
    let Some(url) = &config.database_url else { return Ok(None) };
    let to = ConnectTo::url(url.reveal())?;
    Ok(Some(Database { admin: to.clone(), login: to, embedded: None, folder: None, users: None }))
}

impl Database {
    fn of(embedded: &Embedded, running: Running) -> anyhow::Result<Self> {
        let users = Some(embedded.join()?);
        let (admin, login) = (running.admin.clone(), running.login.clone());
        Ok(Self { admin, login, embedded: Some(running), folder: Some(embedded.clone()), users })
    }

    /// The server was started again by this process: it is ours to stop.
    pub fn was_restarted(&mut self, running: Running) {
        self.embedded = Some(running);
    }

    /// No longer keeps others from stopping the embedded server, for a process that can do without it for a while.
    pub fn leave(&mut self) {
        self.users = None;
    }

    /// Stops the embedded server if this process started it and nobody else uses it.
    pub async fn release(&self, config: &Config) -> anyhow::Result<()> {
        if self.embedded.as_ref().is_none_or(|server| server.was_adopted) {
            return Ok(());
        }
        let server = embedded(config)?;
        let users = match &self.users {
            Some(users) => Some(users.clone()),
            None => server.join().ok(), // none: another process is just stopping it
        };
        if users.as_ref().is_some_and(Users::are_only_us) {
            server.stop().await?;
        }
        Ok(())
    }

    /// Brings the database to this binary's schema. One that was restored is renewed, before anything works on it.
    pub async fn migrate(&self) -> anyhow::Result<Applied> {
        let applied = migrate::run(&self.admin, self.login.login(), &lane_names()).await;
        let applied = applied.context("the database could not be migrated")?;
        if let Some(folder) = self.folder.as_ref().filter(|folder| folder.is_to_renew()) {
            self.renew().await?;
            folder.was_renewed()?;
        }
        Ok(applied)
    }

    /// Makes receipts, claims and tokens that were given out before a restore count for nothing.
    pub async fn renew(&self) -> anyhow::Result<()> {
        restored::renew(&self.admin, &lane_names()).await.context("the restored database could not be renewed")
    }

    /// The environment of everything that runs against this database.
    pub fn env(&self, config: &Config) -> anyhow::Result<Env> {
        let vault = match config.master_keys() {
            Some(lines) => Vault::new(&lines)?,
            None => {
                std::fs::create_dir_all(&config.data_dir)
                    .with_context(|| format!("the data folder {} cannot be made", config.data_dir.display()))?;
                Vault::open_file(&config.data_dir.join("master.key"))?
            }
        };
        let db = Db::lazy(&self.login, config.db_connections, Duration::from_secs(10));
        Env::new(db, config.clone(), Clock::System, vault)
    }
}

/// `serve` and `worker` may start before the migration: they wait a minute for their schema, then say what to run.
pub async fn wait_for_schema(env: &Env) -> anyhow::Result<()> {
    let wanted = migrate::wanted_version();
    let mut last = String::from("it does not answer");
    for _ in 0..60 {
        match schema_version(env).await {
            Ok((Some(_), true)) if is_to_renew(env) => last = "it was restored, and is not renewed yet".into(),
            Ok((Some(version), true)) if version >= wanted => return Ok(()),
            Ok((Some(version), false)) if version >= wanted => last = "its set-up is not finished".into(),
            Ok((Some(version), _)) => last = format!("it has schema {version}, and this binary wants {wanted}"),
            Ok((None, _)) => last = "it has not been set up".into(),
            Err(error) => last = format!("{:#}", anyhow::Error::from(error)),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    bail!(
        "the database is not ready: {last}\n\nhint: run `tributary migrate`, then start this again; `tributary doctor` says more"
    )
}

/// The schema, and whether queues and functions have followed it.
async fn schema_version(env: &Env) -> store::Result<(Option<i32>, bool)> {
    let mut conn = env.db.acquire().await?;
    let version = migrate::version(&mut conn).await?;
    if version < Some(migrate::wanted_version()) {
        return Ok((version, false));
    }
    Ok((version, migrate::is_complete(&mut conn, &lane_names()).await?))
}

fn is_to_renew(env: &Env) -> bool {
    env.config.database_url.is_none() && embedded(&env.config).is_ok_and(|folder| folder.is_to_renew())
}

fn lane_names() -> Vec<&'static str> {
    lanes::ALL.iter().map(|lane| lane.name).collect()
}
