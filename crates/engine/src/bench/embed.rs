//! Compares the embedder `local` with the same model driven in a plain loop, and a question's time alone with its time beside documents.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use tokio::task::JoinHandle;

use super::{Case, ROUNDS, Round, median};
use crate::Config;
use crate::memory::embed::local::{LocalModel, lower_priority};
use crate::memory::embed::{Side, local_files};

const QUESTIONS: usize = 200;
/// Texts in a call, and calls at once: as when several documents are remembered.
const CALL: usize = 16;
const CALLS: usize = 3;
/// Longer than the pauses between two rounds, and short enough to wait for.
const IDLE: Duration = Duration::from_secs(3);
const WORDS: [&str; 4] =
    ["how is a lease extended", "where are tokens kept", "why did my sync stop", "when is a document embedded"];

/// Runs the bench over texts of equal length. It needs no database.
pub async fn embed(config: &Config, texts: &[String]) -> anyhow::Result<Vec<Case>> {
    let texts: Arc<[String]> = texts.into();
    let mut cases = Vec::new();
    let before = resident_mb();
    for n_threads in [1, 2] {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        let mut loaded = String::new();
        for _ in 0..ROUNDS {
            bare.push(in_a_loop(config, n_threads, &texts).await?);
            let model = Arc::new(LocalModel::with(local_files(config, config.local_model), n_threads, IDLE));
            let empty = resident_mb();
            warm(&model, n_threads).await?;
            ours.push(in_calls(&model, &texts).await?);
            let full = resident_mb();
            is_dropped(&model).await?;
            loaded = format!(
                "resident memory at the start {before} MB, without a model {empty}, with {} {full}, dropped {}",
                n_threads + 1,
                resident_mb()
            );
        }
        let (ours, bare) = (median(ours), median(bare));
        let what = format!("chunks on {n_threads} thread(s), beside the bare library at the same priority");
        let mut case = Case::new(what, "chunks/s", &ours, bare.rate);
        case.note = format!("times are those of calls with {CALL} chunks, {CALLS} at once; {loaded}");
        cases.push(case);
    }
    cases.extend(questions(config, &texts).await?);
    Ok(cases)
}

/// A question's time: in a plain loop, alone, and while all threads make vectors of documents.
async fn questions(config: &Config, texts: &Arc<[String]>) -> anyhow::Result<[Case; 2]> {
    let files = local_files(config, config.local_model);
    let bare = blocking(move || {
        let mut model = files.open()?;
        timed(|nth| model.embed(WORDS[nth % WORDS.len()]).map(drop))
    })
    .await?;
    let begun = Instant::now();
    let model = Arc::new(LocalModel::new(local_files(config, config.local_model)));
    ask(&model, 1).await?;
    let first_ms = begun.elapsed().as_secs_f64() * 1_000.0;
    let alone = ask(&model, QUESTIONS).await?;
    let (flooded, all) = (model.clone(), texts.clone());
    let flood: JoinHandle<anyhow::Result<Infallible>> = tokio::spawn(async move {
        loop {
            in_calls(&flooded, &all).await?;
        }
    });
    // The flood has begun when its first texts are done.
    warm(&model, 1).await?;
    let beside = ask(&model, QUESTIONS).await?;
    flood.abort();
    let mut first = Case::new("questions, beside the bare library".into(), "questions/s", &alone, bare.rate);
    first.note = format!("the first one takes {first_ms:.0} ms, because it loads the model");
    let second = "questions while documents are embedded flat out, beside questions alone".into();
    Ok([first, Case::new(second, "questions/s", &beside, alone.rate)])
}

/// The bare library: each thread has a model and a share of the texts.
async fn in_a_loop(config: &Config, n_threads: usize, texts: &Arc<[String]>) -> anyhow::Result<Round> {
    let mut models = Vec::new();
    for _ in 0..n_threads {
        models.push(local_files(config, config.local_model).open()?);
    }
    let begun = Instant::now();
    let threads: Vec<_> = models
        .into_iter()
        .enumerate()
        .map(|(nth, mut model)| {
            let texts = texts.clone();
            std::thread::spawn(move || {
                lower_priority();
                texts.iter().skip(nth).step_by(n_threads).try_for_each(|text| model.embed(text).map(drop))
            })
        })
        .collect();
    blocking(move || {
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread failed"))?)
    })
    .await?;
    Ok(Round { rate: texts.len() as f64 / begun.elapsed().as_secs_f64(), times_ms: Vec::new() })
}

/// All texts, by some calls at once.
async fn in_calls(model: &Arc<LocalModel>, texts: &Arc<[String]>) -> anyhow::Result<Round> {
    let begun = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for nth in 0..CALLS {
        let (model, texts) = (model.clone(), texts.clone());
        callers.spawn(async move {
            let mut times_ms = Vec::new();
            for call in texts.chunks(CALL).skip(nth).step_by(CALLS) {
                let (begun, call) = (Instant::now(), call.iter().map(String::as_str).collect::<Vec<_>>());
                model.embed(Side::Document, &call).await.map_err(|fault| anyhow!(fault.in_words()))?;
                times_ms.push(begun.elapsed().as_secs_f64() * 1_000.0);
            }
            Ok::<_, anyhow::Error>(times_ms)
        });
    }
    let mut times_ms = Vec::new();
    while let Some(done) = callers.join_next().await {
        times_ms.extend(done??);
    }
    Ok(Round { rate: texts.len() as f64 / begun.elapsed().as_secs_f64(), times_ms })
}

async fn ask(model: &LocalModel, n: usize) -> anyhow::Result<Round> {
    let (begun, mut times_ms) = (Instant::now(), Vec::new());
    for nth in 0..n {
        let begun = Instant::now();
        let asked = model.embed(Side::Query, &[WORDS[nth % WORDS.len()]]).await;
        asked.map_err(|fault| anyhow!(fault.in_words()))?;
        times_ms.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(Round { rate: n as f64 / begun.elapsed().as_secs_f64(), times_ms })
}

fn timed(mut one: impl FnMut(usize) -> anyhow::Result<()>) -> anyhow::Result<Round> {
    one(0)?;
    let begun = Instant::now();
    (0..QUESTIONS).try_for_each(&mut one)?;
    Ok(Round { rate: QUESTIONS as f64 / begun.elapsed().as_secs_f64(), times_ms: Vec::new() })
}

/// Loads the model on every thread.
async fn warm(model: &LocalModel, n_threads: usize) -> anyhow::Result<()> {
    let texts = vec!["warm"; 8 * n_threads];
    for side in [Side::Query, Side::Document] {
        model.embed(side, &texts).await.map_err(|fault| anyhow!(fault.in_words()))?;
    }
    Ok(())
}

/// Waits until the model has been dropped.
async fn is_dropped(model: &LocalModel) -> anyhow::Result<()> {
    let waiting = async {
        while model.n_threads() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(IDLE * 10, waiting).await.context("the model was not dropped")?;
    // A thread is not counted any more just before it frees its model.
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

/// The resident memory of this process in megabytes; 0 where that is not known.
fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kb| kb / 1_024)
}
