//! Searches while another tenant's documents are written as fast as they can be.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use domain::{DocumentType, Record, SourceId, TenantId};
use engine::bench::Case;
use engine::work::{Runtime, Schedule, Stop};
use engine::{Env, lanes, memory};
use store::sources;
use tokio::task::JoinSet;

use super::ask::{Times, ask_all};
use super::{Asker, EMBED, Page, Question, asker};

/// Questions are asked for at least so long: the tasks that keep a memory run every ten seconds.
const LEAST: Duration = Duration::from_secs(30);
const WRITERS: usize = 3;
const BATCH: usize = 25;
/// The upkeep tasks that take in what is written.
const UPKEEP: [&str; 3] = ["memory", "postings", "vectors"];

/// Compares hybrid searches during a backfill with the same searches `alone`.
pub(super) async fn measure(
    env: &Env,
    to: SocketAddr,
    askers: &[Asker],
    pages: &Arc<[Page]>,
    questions: &[Question],
    alone: &Case,
) -> anyhow::Result<Case> {
    let name = "one tenant with all of it, while another tenant's documents are written flat out";
    eprintln!("measuring {name}");
    let backfill = Backfill::start(env, pages).await?;
    let mut answers = Vec::new();
    while backfill.begun.elapsed() < LEAST {
        answers.extend(ask_all(to, askers, questions, "hybrid", false).await?);
    }
    let rate = backfill.stop().await?;
    let times = Times::of(answers.iter().map(|answer| answer.took));
    Ok(Case {
        case: name.into(),
        ours: times.p99(),
        limit: alone.p99_ms,
        ratio: times.p99() / alone.p99_ms,
        unit: "ms (p99)",
        p50_ms: times.p50(),
        p99_ms: times.p99(),
        note: format!(
            "{rate:.0} chunks/s were written meanwhile; hybrid searches without that: p50 {:.2} ms, p99 {:.2} ms; a ratio of 1 is as fast",
            alone.p50_ms, alone.p99_ms
        ),
    })
}

/// Writers and upkeep at work, until stopped.
struct Backfill {
    begun: Instant,
    n_chunks: Arc<AtomicUsize>,
    stop: Stop,
    tasks: JoinSet<anyhow::Result<()>>,
}

impl Backfill {
    async fn start(env: &Env, pages: &Arc<[Page]>) -> anyhow::Result<Self> {
        let tenant_id = asker(env, "another").await?.tenant_id;
        let mut conn = env.db.acquire().await?;
        let source_id = sources::ensure_manual(&mut conn, tenant_id).await?;
        drop(conn);
        let (n_chunks, stop, mut tasks) = (Arc::<AtomicUsize>::default(), Stop::default(), JoinSet::new());
        for first in 0..WRITERS {
            let (env, pages) = (env.clone(), pages.clone());
            let (n_chunks, stop) = (n_chunks.clone(), stop.clone());
            tasks.spawn(Writer { env, tenant_id, source_id, pages, n_chunks, stop }.write(first));
        }
        for task in lanes::SCHEDULES.iter().filter(|task| UPKEEP.contains(&task.name)) {
            tasks.spawn(keep(env.clone(), task, stop.clone()));
        }
        Ok(Self { begun: Instant::now(), n_chunks, stop, tasks })
    }

    /// Ends it, and returns how many chunks a second were written.
    async fn stop(mut self) -> anyhow::Result<f64> {
        let rate = self.n_chunks.load(Relaxed) as f64 / self.begun.elapsed().as_secs_f64();
        self.stop.stop();
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(rate)
    }
}

struct Writer {
    env: Env,
    tenant_id: TenantId,
    source_id: SourceId,
    pages: Arc<[Page]>,
    /// The number of chunks that all writers have written.
    n_chunks: Arc<AtomicUsize>,
    stop: Stop,
}

impl Writer {
    /// Remembers its share of the pages again and again, each time as new documents, until told to stop.
    async fn write(self, first: usize) -> anyhow::Result<()> {
        for (nth, pages) in self.pages.chunks(BATCH).cycle().enumerate().skip(first).step_by(WRITERS) {
            if self.stop.is_stopping() {
                break;
            }
            let records = pages.iter().map(|page| self.record(nth, page)).collect();
            let begin = || async { Ok(self.env.db.begin().await?) };
            let remembered = memory::remember(&self.env, self.tenant_id, records, begin).await;
            let (tx, batch) = remembered.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
            tx.commit().await?;
            if batch.records.iter().any(|record| record.is_pending) {
                // A slow embedder leaves most of it to its lane.
                Runtime::new(self.env.clone(), &EMBED, &[]).run_due().await?;
            }
            self.n_chunks.fetch_add(batch.records.iter().map(|record| record.n_chunks).sum(), Relaxed);
        }
        Ok(())
    }

    /// A page of the `nth` batch, under a name that no other batch uses.
    fn record(&self, nth: usize, page: &Page) -> Record {
        let name = format!("{} of batch {nth}", page.id);
        Record { title: page.title.clone(), ..Record::new(self.source_id, name, DocumentType::File, &page.text) }
    }
}

/// Runs an upkeep task as often as an installation does.
async fn keep(env: Env, task: &'static Schedule, stop: Stop) -> anyhow::Result<()> {
    while tokio::time::timeout(task.every, stop.stopped()).await.is_err() {
        (task.run)(&env).await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
    }
    Ok(())
}
