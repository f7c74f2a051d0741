//! A first sync of very many contacts through the real lane, beside fetching the same pages with nothing done to them; then the same sync
//! again, when nothing has changed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use domain::{JobId, JobKind, JobStatus, Secret, SourceId, Transport};
use engine::bench::{Case, Round};
use engine::lanes::client_facts::ClientFactsOf;
use engine::lanes::ingest::Ingest;
use engine::pull::connect;
use engine::pull::jobs::{self, Asked};
use engine::work::{LaneEntry, Runtime};
use engine::{Config, Env};
use fakes::{Fakes, Seen};
use store::jobs::Job;

use super::client::Client;
use super::scratch::Scratch;

#[derive(clap::Args)]
pub struct Args {
    /// The number of contacts at the provider.
    #[arg(long, default_value_t = 20_000)]
    contacts: usize,
    /// The time the provider takes for each page of 100, in milliseconds.
    #[arg(long, default_value_t = 20)]
    page_ms: u64,
}

/// No limit of the provider's is met.
const RATE_FACTOR: f64 = 1_000_000.0;
const SAMPLE_EVERY: Duration = Duration::from_millis(50);

static INGEST: [LaneEntry; 1] = [LaneEntry::of::<Ingest>()];
static CLIENTS: [LaneEntry; 1] = [LaneEntry::of::<ClientFactsOf>()];

/// A provider on this machine, and the settings that lead to it.
pub async fn provider(config: &Config) -> (Fakes, Config) {
    let fakes = Fakes::start().await;
    let mut config = Config { pull_rate_factor: RATE_FACTOR, ..config.clone() };
    for (name, value) in fakes.settings() {
        config.providers.set(name, value);
    }
    (fakes, config)
}

pub async fn run(scratch: &Scratch, fakes: &Fakes, args: &Args) -> anyhow::Result<Vec<Case>> {
    eprintln!("measuring; about a minute");
    let env = &scratch.env;
    env.embedders.configured().embed_query("warm").await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
    let (provider, bulk) = fakes.bulk();
    (bulk.fill)(fakes, args.contacts);
    fakes.set_latency(bulk.path, Duration::from_millis(args.page_ms));
    let key = Secret::new(bulk.key);

    let provider = env.providers.named(provider.name)?;
    let source_id = connect::with_key(env, scratch.tenant_id, provider, &key, None, Transport::Rest).await?;
    let mut conn = env.db.acquire().await?;
    let first = store::jobs::live(&mut conn, scratch.tenant_id, source_id).await?.context("its first sync")?;
    drop(conn);
    let first = synced(scratch, fakes, first).await?;
    let limit = fetched(fakes, &first.pages, &key).await?;
    let began = Instant::now();
    Runtime::new(env.clone(), &CLIENTS, &[]).run_due().await?;
    let clients_took = began.elapsed();

    let again = again(scratch, source_id).await?;
    let again = synced(scratch, fakes, again).await?;
    let limit_again = fetched(fakes, &again.pages, &key).await?;
    for (synced, what) in [(&first, "first"), (&again, "second")] {
        let n = usize::try_from(synced.job.items_processed)?;
        ensure!(n == args.contacts, "the {what} sync read {n} of {} contacts", args.contacts);
    }
    ensure!(again.job.embed_calls == 0, "nothing had changed, and {} calls embedded texts", again.job.embed_calls);

    let at = format!("{} contacts, 100 a page, {} ms a page", args.contacts, args.page_ms);
    let mut one = Case::new(
        format!("first sync through the lane, beside fetching the same pages alone ({at})"),
        "records/s",
        &first.round,
        limit,
    );
    one.note = format!(
        "{}; {} texts embedded in {} calls; clients derived in another {:.1} s; p50 and p99 are from one page to the next",
        first.memory,
        first.job.embed_texts,
        first.job.embed_calls,
        clients_took.as_secs_f64()
    );
    let mut two = Case::new("the same again, nothing changed".into(), "records/s", &again.round, limit_again);
    two.note = format!("{}; {} calls embedded texts", again.memory, again.job.embed_calls);
    Ok(vec![one, two])
}

async fn again(scratch: &Scratch, source_id: SourceId) -> anyhow::Result<JobId> {
    let asked = jobs::sync(&scratch.env, scratch.tenant_id, source_id, Some(JobKind::Full), "bench").await?;
    match asked {
        Some(Asked::Started(id)) => Ok(id),
        other => anyhow::bail!("a second sync did not begin: {other:?}"),
    }
}

struct Synced {
    job: Job,
    round: Round,
    memory: Memory,
    /// The requests for pages, as the provider saw them.
    pages: Vec<Seen>,
}

/// Runs a job to its end.
async fn synced(scratch: &Scratch, fakes: &Fakes, id: JobId) -> anyhow::Result<Synced> {
    let env = &scratch.env;
    fakes.clear_ledger();
    let sampler = Sampler::start();
    let began = Instant::now();
    let runtime = Runtime::new(env.clone(), &INGEST, &[]);
    let job = loop {
        runtime.run_due().await?;
        let job = get(env, scratch, id).await?;
        if job.status.is_over() {
            break job;
        }
        tokio::time::sleep(Duration::from_millis(20)).await; // it made room for others; there are none
    };
    let took = began.elapsed();
    let memory = sampler.end();
    ensure!(job.status == JobStatus::Completed, "the sync ended as {}: {:?}", job.status, job.error_message);
    let pages: Vec<Seen> = fakes.ledger().into_iter().filter(fakes.bulk().1.is_page).collect();
    let times_ms = pages.windows(2).map(|two| (two[1].at - two[0].at).num_microseconds().unwrap_or(0) as f64 / 1_000.0);
    let round = Round { rate: job.items_processed as f64 / took.as_secs_f64(), times_ms: times_ms.collect() };
    Ok(Synced { job, round, memory, pages })
}

async fn get(env: &Env, scratch: &Scratch, id: JobId) -> anyhow::Result<Job> {
    let mut conn = env.db.acquire().await?;
    store::jobs::get(&mut conn, scratch.tenant_id, id).await?.context("the job is gone")
}

/// Records a second when the same pages are fetched one after the other, as their tokens force it, and dropped.
async fn fetched(fakes: &Fakes, pages: &[Seen], key: &Secret) -> anyhow::Result<f64> {
    let host = fakes.url().trim_start_matches("http://");
    let mut client = Client::connect(host.parse()?).await?;
    let n_contacts = (fakes.bulk().1.count)(fakes);
    let began = Instant::now();
    for page in pages {
        let request = format!(
            "GET {}?{} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nAccept: application/json\r\n\r\n",
            page.path,
            page.query,
            key.reveal()
        );
        let answer = client.ask(request.as_bytes()).await?;
        ensure!(answer.status == 200, "a page was answered {}", answer.status);
    }
    ensure!(pages.len() >= n_contacts.div_ceil(100), "only {} pages were seen", pages.len());
    Ok(n_contacts as f64 / began.elapsed().as_secs_f64())
}

/// Resident memory of this process, the provider's records included: at the beginning, halfway, at the end, and at most.
struct Memory {
    mib: Vec<f64>,
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = |nth: usize| self.mib.get(nth).copied().unwrap_or(0.0);
        let most = self.mib.iter().copied().fold(0.0, f64::max);
        let last = self.mib.len().saturating_sub(1);
        write!(
            f,
            "resident memory {:.0} MiB at the beginning, {:.0} halfway, {:.0} at the end, {most:.0} at most (with the provider's own records)",
            at(0),
            at(last / 2),
            at(last)
        )
    }
}

struct Sampler {
    mib: Arc<Mutex<Vec<f64>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Sampler {
    fn start() -> Self {
        let mib = Arc::new(Mutex::new(vec![resident_mib()]));
        let into = mib.clone();
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(SAMPLE_EVERY).await;
                into.lock().unwrap_or_else(PoisonError::into_inner).push(resident_mib());
            }
        });
        Self { mib, task }
    }

    fn end(self) -> Memory {
        self.task.abort();
        let mut mib = std::mem::take(&mut *self.mib.lock().unwrap_or_else(PoisonError::into_inner));
        mib.push(resident_mib());
        Memory { mib }
    }
}

/// The resident memory of this process in MiB; 0 if the system does not tell.
pub(super) fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).map_or(0.0, |kib| kib / 1_024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_at_the_beginning_halfway_and_at_the_end() {
        let memory = Memory { mib: vec![10.0, 40.0, 30.0, 90.0, 20.0] };
        assert!(
            memory
                .to_string()
                .starts_with("resident memory 10 MiB at the beginning, 30 halfway, 20 at the end, 90 at most")
        );
        assert!(Memory { mib: Vec::new() }.to_string().contains("0 MiB"));
    }
}
