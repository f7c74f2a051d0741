//! The lane of crash tests. It writes one row per item, and only the runtime's promises make that row unique. Beside it are the planted
//! bugs, which the suite must catch.

use std::time::Duration;

use domain::{Fault, TenantId};
use engine::Env;
use engine::lanes::upkeep::Upkeep;
use engine::work::{Lane, LaneEntry, Lease, Outcome};
use serde::{Deserialize, Serialize};
use store::queue::Queue;
use store::{ConnectTo, Db, Tx};
use uuid::Uuid;

pub const NAME: &str = "effects";

/// The ways in which an item can behave.
pub const KINDS: &[&str] = &["ok", "flaky", "wait", "slow", "park", "cancel", "blob"];

#[derive(Serialize, Deserialize)]
pub struct Effects {
    pub item: Uuid,
    pub kind: String,
}

impl Lane for Effects {
    const NAME: &'static str = NAME;
    const LEASE_SECS: u32 = 2;
    const BATCH: u32 = 8;
    const MAX_ATTEMPTS: i32 = 6;

    /// Safe to repeat because its effect commits with the acknowledgement, and for no other reason: the table has no key.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        if let Some(early) = behave(&self.kind, lease).await? {
            return Ok(early);
        }
        if self.kind == "blob" {
            keep_blob(env, self.item).await?;
        }
        let mut effect = lease.begin(env).await?;
        write_effect(&mut effect, self.item, lease).await?;
        effect.commit().await
    }
}

/// Does what the item does before its effect. `Some`: it never gets to the effect.
async fn behave(kind: &str, lease: &Lease) -> Result<Option<Outcome>, Fault> {
    let is_first_claim = lease.receipt().read_ct == 1;
    match kind {
        "flaky" if is_first_claim => Err(Fault::Transient(anyhow::anyhow!("told to fail once"))),
        "wait" if is_first_claim => Ok(Some(Outcome::Snooze(Duration::from_millis(100), "told to wait once"))),
        "park" if is_first_claim => Ok(Some(Outcome::Snooze(Duration::from_secs(7_200), "told to wait for two hours"))),
        "slow" => {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            Ok(None)
        }
        "cancel" => Ok(Some(Outcome::Cancel("told to cancel"))),
        "broken" => Err(Fault::Transient(anyhow::anyhow!("told to fail for ever"))),
        "poison" => std::process::abort(),
        "spin" => loop {
            std::hint::spin_loop(); // never yields: it ends only with its process
        },
        "hungry" => {
            let mut hoard = Vec::new();
            loop {
                hoard.push(vec![0_u8; 16 << 20]); // until there is no memory left, which ends the process
            }
        }
        "panic" => panic!("told to panic"),
        "endless" => std::future::pending().await,
        _ => Ok(None),
    }
}

/// Stores the item's file. The whole file is there afterwards, even if the last attempt left a part of it.
async fn keep_blob(env: &Env, item: Uuid) -> Result<(), Fault> {
    let (tenant_id, bytes) = (TenantId(item), bytes::Bytes::from(item.to_string().repeat(1_000)));
    let key = env.blobs.put(&env.db, tenant_id, bytes.clone()).await?;
    match env.blobs.get(tenant_id, &key).await? {
        Some(kept) if kept == bytes => Ok(()),
        _ => Err(Fault::Malformed { what: "what was put is not there".into() }),
    }
}

async fn write_effect(tx: &mut Tx, item: Uuid, lease: &Lease) -> Result<(), Fault> {
    sqlx::query("insert into effects (item, read_ct, pid) values ($1, $2, $3)")
        .bind(item)
        .bind(lease.receipt().read_ct)
        .bind(i32::try_from(std::process::id()).unwrap_or(0))
        .execute(&mut **tx)
        .await
        .map_err(store::Error::from)?;
    Ok(())
}

/// Planted bug: acknowledges first, in a transaction of its own. A crash between loses the effect.
#[derive(Serialize, Deserialize)]
struct AckFirst(Effects);

impl Lane for AckFirst {
    const NAME: &'static str = NAME;
    const LEASE_SECS: u32 = 2;
    const BATCH: u32 = 8;

    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        if let Some(early) = behave(&self.0.kind, lease).await? {
            return Ok(early);
        }
        let done = lease.begin(env).await?.commit().await?;
        let mut tx = env.db.begin().await?;
        write_effect(&mut tx, self.0.item, lease).await?;
        tx.commit().await?;
        Ok(done)
    }
}

/// Planted bug: deletes by message id alone and ignores whether a row was deleted. A worker that overslept its lease writes a second effect.
#[derive(Serialize, Deserialize)]
struct NoFence(Effects);

impl Lane for NoFence {
    const NAME: &'static str = NAME;
    const LEASE_SECS: u32 = 2;
    const BATCH: u32 = 8;

    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        if let Some(early) = behave(&self.0.kind, lease).await? {
            return Ok(early);
        }
        // In a task of its own. The heartbeat cannot stop it when the lease is lost, so only a fence could help.
        let (env, lease) = (env.clone(), lease.clone());
        let unfenced = tokio::spawn(async move {
            store::crash::at(store::crash::Point::EffectBegun)?; // before the transaction begins, so that no timeout of the server ends it
            let mut tx = env.db.begin().await?;
            let delete = sqlx::query("delete from pgmq.q_effects where msg_id = $1").bind(lease.receipt().msg_id);
            delete.execute(&mut *tx).await.map_err(store::Error::from)?;
            write_effect(&mut tx, self.0.item, &lease).await?;
            tx.commit().await?;
            Ok(Outcome::Done)
        });
        unfenced.await.map_err(|error| Fault::Transient(error.into()))?
    }
}

static HONEST: [LaneEntry; 2] = [LaneEntry::of::<Effects>(), LaneEntry::of::<Upkeep>()];
static ACK_FIRST: [LaneEntry; 2] = [LaneEntry::of::<AckFirst>(), LaneEntry::of::<Upkeep>()];
static NO_FENCE: [LaneEntry; 2] = [LaneEntry::of::<NoFence>(), LaneEntry::of::<Upkeep>()];

/// The lanes of a crash test's worker, honest or with a bug planted.
pub fn lanes(bug: Option<&str>) -> &'static [LaneEntry] {
    match bug {
        None => &HONEST,
        Some("ack-first") => &ACK_FIRST,
        Some("no-fence") => &NO_FENCE,
        Some(other) => panic!("no bug called {other:?}"),
    }
}

/// Creates the tables. The key of `inbox` makes a repeated send one item. `effects` has no key on purpose.
pub async fn create_tables(admin: &ConnectTo, with_unique_key: bool) -> store::Result<()> {
    let mut conn = store::bench::administrator(admin).await?;
    let key = if with_unique_key { "primary key" } else { "" };
    let sql = format!(
        "set role tributary_owner; drop table if exists public.inbox, public.effects;
         create table public.inbox (item uuid {key});
         create table public.effects (n bigint generated always as identity, item uuid, read_ct int, pid int, at timestamptz default clock_timestamp());
         grant select, insert, update, delete on public.inbox, public.effects to service_role"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut conn).await?;
    Ok(())
}

/// Sends one item as intake does: its row and its message in one commit. Sends nothing when the row exists.
pub async fn send(db: &Db, tenant_id: TenantId, item: Uuid, kind: &str) -> store::Result<()> {
    let mut tx = db.begin().await?;
    let inserted =
        sqlx::query("insert into inbox (item) values ($1) on conflict do nothing").bind(item).execute(&mut *tx).await?;
    if inserted.rows_affected() == 1 {
        let message = Effects { item, kind: kind.to_owned() };
        Queue::new(NAME)?.send(&mut tx, tenant_id, &[message]).await?;
    }
    tx.commit().await
}
