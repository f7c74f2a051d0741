//! A database of the bench's own on the same server, made and removed with it: nobody's data is touched, nobody's lanes join in.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use domain::TenantId;
use engine::database::Database;
use engine::lanes;
use engine::work::Stop;
use engine::{Config, Env};
use metrics_exporter_prometheus::PrometheusHandle;
use store::{ConnectTo, Db, migrate, tenants};
use tokio::net::TcpListener;

use crate::cli::process;

pub struct Scratch {
    pub env: Env,
    pub tenant_id: TenantId,
    pub login: ConnectTo,
    name: String,
    is_kept: bool,
    server: ConnectTo,
    metrics: PrometheusHandle,
}

/// Our HTTP server on a port of its own, until told to stop.
pub struct Serving {
    pub address: SocketAddr,
    stop: Stop,
    task: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl Serving {
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.stop();
        self.task.await?
    }
}

impl Scratch {
    pub async fn make(database: &Database, config: &Config) -> anyhow::Result<Self> {
        Self::named(database, config, format!("tributary_bench_{}", std::process::id())).await
    }

    /// One that stays, or the one that an earlier run left.
    pub async fn keep(database: &Database, config: &Config, of: &str) -> anyhow::Result<Self> {
        Ok(Self { is_kept: true, ..Self::named(database, config, format!("tributary_bench_{of}")).await? })
    }

    async fn named(database: &Database, config: &Config, name: String) -> anyhow::Result<Self> {
        migrate::create_database(&database.admin, &name, None)
            .await
            .context("the bench makes a database of its own, and this login may not")?;
        let (admin, login) = (database.admin.database(&name), database.login.database(&name));
        let lanes: Vec<&str> = lanes::ALL.iter().map(|lane| lane.name).collect();
        migrate::run(&admin, login.login(), &lanes).await?;
        let db = Db::lazy(&login, 16, Duration::from_secs(10));
        let env = Env { db, ..database.env(config)? };
        let mut conn = env.db.acquire().await?;
        let tenant_id = tenants::ensure_operator(&mut conn).await?;
        drop(conn);
        let server = database.admin.clone();
        Ok(Self { env, tenant_id, login, name, is_kept: false, server, metrics: process::metrics()? })
    }

    /// Serves this database over HTTP, without lanes.
    pub async fn serve(&self) -> anyhow::Result<Serving> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, stop) = (listener.local_addr()?, Stop::default());
        let task = tokio::spawn(web::serve(self.env.clone(), listener, self.metrics.clone(), stop.clone()));
        Ok(Serving { address, stop, task })
    }

    /// The sums of a histogram by the values of one label: (value, seconds), the largest first.
    pub fn shares(&self, histogram: &str, label: &str) -> Vec<(String, f64)> {
        let begins = format!("{histogram}_sum{{{label}=\"");
        let mut shares: Vec<(String, f64)> = self
            .metrics
            .render()
            .lines()
            .filter_map(|line| line.strip_prefix(&begins)?.split_once("\"} "))
            .filter_map(|(value, secs)| Some((value.to_owned(), secs.parse().ok()?)))
            .collect();
        shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        shares
    }

    pub async fn remove(self) -> anyhow::Result<()> {
        self.env.db.close().await;
        if self.is_kept {
            return Ok(());
        }
        Ok(store::bench::drop_database(&self.server, &self.name).await?)
    }
}
