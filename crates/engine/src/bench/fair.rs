//! A tenant's waiting time beside another tenant's flood, as a ratio to its waiting time in an idle lane.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use domain::{Fault, Notice, Op, TenantId};
use serde::{Deserialize, Serialize};
use store::{bench, tenants};
use tokio::sync::mpsc;

use super::{Case, Round, quantile};
use crate::lanes::embed::Embed;
use crate::lanes::remember_activity::RememberActivity;
use crate::work::{Lane, LaneEntry, Lease, Outcome, Runtime, Stop};
use crate::{Env, lanes};

/// Items of the tenant who floods the lane.
const FLOOD: i64 = 100_000;
const PICKUPS: u64 = 60;
const EVENTS: usize = 7;
/// The time that an item takes, chosen so that the flood lasts longer than the measurement.
const ITEM: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(300);

/// The channel on which items of the measured tenant report that they were picked up.
static PICKED_UP: Mutex<Option<mpsc::UnboundedSender<u64>>> = Mutex::new(None);

/// Waits a little and reports. It borrows the queue of another lane, which does not run in a bench's database.
#[derive(Serialize, Deserialize)]
struct Probe {
    /// None in the flood.
    probe: Option<u64>,
}

impl Lane for Probe {
    const NAME: &'static str = Embed::NAME;

    async fn run(self, _: &Env, _: &Lease) -> Result<Outcome, Fault> {
        if let (Some(probe), Ok(sender)) = (self.probe, PICKED_UP.lock())
            && let Some(sender) = sender.as_ref()
        {
            let _ = sender.send(probe);
        }
        tokio::time::sleep(ITEM).await;
        Ok(Outcome::Done)
    }
}

static LANES: [LaneEntry; 1] = [LaneEntry::of::<Probe>()];

/// Measures how long one item waits until it is picked up, and how long one event until it is searchable, each beside 100,000 of another
/// tenant and in an idle lane. A bench's database: everything in it belongs to the bench.
pub async fn fair(env: &Env, tenant_id: TenantId) -> anyhow::Result<Vec<Case>> {
    let mut conn = env.db.acquire().await?;
    let other = tenants::create(&mut conn, "bench").await?;
    drop(conn);
    Ok(vec![picked_up(env, other).await?, searchable(env, tenant_id, other).await?])
}

async fn picked_up(env: &Env, tenant_id: TenantId) -> anyhow::Result<Case> {
    let (sender, mut picked) = mpsc::unbounded_channel();
    if let Ok(mut place) = PICKED_UP.lock() {
        *place = Some(sender);
    }
    let stop = Stop::default();
    let running = tokio::spawn(Runtime::new(env.clone(), &LANES, &[]).run("bench", stop.clone()));
    let queue = LANES[0].queue();
    let mut all = Vec::new();
    for is_flooded in [false, true] {
        if is_flooded {
            bench::fill(&mut *env.db.acquire().await?, queue, FLOOD, 0.0).await?;
        }
        let mut times_ms = Vec::new();
        for probe in 0..PICKUPS {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let mut tx = env.db.begin().await?;
            queue.send(&mut tx, tenant_id, &[Probe { probe: Some(probe) }]).await?;
            tx.commit().await?;
            let begun = Instant::now();
            while tokio::time::timeout(PATIENCE, picked.recv()).await? != Some(probe) {}
            times_ms.push(begun.elapsed().as_secs_f64() * 1_000.0);
        }
        all.push(times_ms);
    }
    let left = queue.depths(&mut *env.db.acquire().await?, None).await?;
    anyhow::ensure!(!left.is_empty(), "the flood was over before the measurement");
    running.abort(); // it need not finish the flood
    bench::empty(&mut *env.db.acquire().await?, queue).await?;
    case(format!("an item is picked up beside {FLOOD} of another tenant, beside an idle lane"), &all)
}

async fn searchable(env: &Env, flooding: TenantId, tenant_id: TenantId) -> anyhow::Result<Case> {
    let running = tokio::spawn(Runtime::new(env.clone(), &lanes::ALL, &[]).run("bench", Stop::default()));
    let mut all = Vec::new();
    for is_flooded in [false, true] {
        if is_flooded {
            arrive(env, flooding, FLOOD).await?;
        }
        let mut times_ms = Vec::new();
        for _ in 0..EVENTS {
            arrive(env, tenant_id, 1).await?;
            let begun = Instant::now();
            while bench::documents(&mut *env.db.acquire().await?, tenant_id).await? == 0 {
                anyhow::ensure!(begun.elapsed() < PATIENCE, "an event was not searchable within {PATIENCE:?}");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            times_ms.push(begun.elapsed().as_secs_f64() * 1_000.0);
            bench::remove_documents(&mut *env.db.acquire().await?, tenant_id).await?;
        }
        all.push(times_ms);
    }
    running.abort();
    case(format!("an event is searchable beside {FLOOD} of another tenant, beside an idle lane"), &all)
}

/// Adds events, as intake does: the lane hears of them after the commit.
async fn arrive(env: &Env, tenant_id: TenantId, n: i64) -> anyhow::Result<()> {
    let mut tx = env.db.begin().await?;
    bench::fresh_activities(&mut tx, tenant_id, n).await?;
    tx.notify(Notice::lane(Some(tenant_id), RememberActivity::NAME, Op::Insert));
    Ok(tx.commit().await?)
}

/// `all`: milliseconds in an idle lane, then beside the flood.
fn case(what: String, all: &[Vec<f64>]) -> anyhow::Result<Case> {
    let [idle, flooded] = all else { anyhow::bail!("two measurements make a ratio") };
    let median = |times: &[f64]| {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        quantile(&sorted, 0.5)
    };
    let ours = Round { rate: median(flooded), times_ms: flooded.clone() };
    let mut case = Case::new(what, "ms", &ours, median(idle));
    case.note = "medians; a ratio of 1 is as fast as in an idle lane".into();
    Ok(case)
}
