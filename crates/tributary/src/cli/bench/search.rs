//! The share of an exact search's first ten documents that the real search finds, through the HTTP API, over real manuals.

use std::collections::HashMap;
use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use domain::{DocumentType, Record, Scope, Secret, TenantId};
use engine::bench::{Case, quantile};
use engine::lanes::embed::Embed;
use engine::work::{LaneEntry, Runtime};
use engine::{Env, memory};
use serde::Deserialize;
use store::memory::{VectorTable, maintain};
use store::{keys, sources, tenants};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::client::Client;
use super::scratch::Scratch;

#[derive(clap::Args)]
pub struct Args {
    /// Folder with corpus.jsonl and queries.txt; `scripts/corpus.sh` makes it.
    #[arg(long, env = "CORPUS_DIR")]
    corpus: PathBuf,
    /// The number of chunks of the largest tenant.
    #[arg(long, default_value_t = 100_000)]
    chunks: usize,
    /// The number of queries asked in each cell.
    #[arg(long, default_value_t = 1_000)]
    queries: usize,
}

const K: usize = 10;
/// One document in twenty is of this type: what the filter leaves.
const RARE: &str = "manual.rare";
const ASKING: usize = 2;

static EMBED: [LaneEntry; 1] = [LaneEntry::of::<Embed>()];

#[derive(Clone, Deserialize)]
pub(super) struct Page {
    id: String,
    title: Option<String>,
    pub(super) text: String,
}

/// A caller that searches, with its key.
pub(super) struct Asker {
    pub(super) tenant_id: TenantId,
    key: Secret,
}

pub async fn run(scratch: &Scratch, args: &Args) -> anyhow::Result<Vec<Case>> {
    let (pages, queries) = read(args)?;
    let env = &scratch.env;
    eprintln!("remembering {} pages three times over; some minutes", pages.len());
    let mut tenants = Vec::new();
    for name in ["all of it", "a hundredth"].into_iter().map(String::from).chain((0..10).map(|n| format!("tenth {n}")))
    {
        tenants.push(asker(env, &name).await?);
    }
    let (one, rest) = tenants.split_at(1);
    let (small, ten) = rest.split_at(1);
    load(env, &one[0], pages.iter()).await?;
    load(env, &small[0], pages.iter().step_by(100)).await?;
    for (nth, tenant) in ten.iter().enumerate() {
        load(env, tenant, pages.iter().skip(nth).step_by(10)).await?;
    }
    index(env).await?;

    let serving = scratch.serve().await?;
    let mut cases = Vec::new();
    for (name, askers) in [("one tenant with all of it", one), ("ten tenants", ten), ("a tenant with 1%", small)] {
        for is_filtered in [false, true] {
            let filter = if is_filtered { ", 5% filter" } else { "" };
            eprintln!("measuring {name}{filter}");
            let mut exact = Vec::new();
            for asker in askers {
                exact.push(Exact::load(env, asker.tenant_id, is_filtered).await?);
            }
            let vector = ask_all(serving.address, askers, &queries, "vector", is_filtered).await?;
            let hybrid = ask_all(serving.address, askers, &queries, "hybrid", is_filtered).await?;
            let mut found = 0.0;
            for (nth, answer) in vector.iter().enumerate() {
                let vector = env.embedders.configured().embed_query(&queries[nth]).await;
                let vector = vector.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
                found += exact[nth % askers.len()].recall(&vector, &answer.documents);
            }
            let recall = found / vector.len() as f64;
            let times = |answers: &[TimedAnswer]| {
                let mut times: Vec<f64> = answers.iter().map(|answer| answer.took.as_secs_f64() * 1_000.0).collect();
                times.sort_by(f64::total_cmp);
                times
            };
            let (vector_ms, hybrid_ms) = (times(&vector), times(&hybrid));
            let n_chunks: usize = exact.iter().map(|exact| exact.rows.len()).sum();
            cases.push(Case {
                case: format!("recall@{K}, {name}{filter}"),
                ours: recall,
                limit: 1.0,
                ratio: recall,
                unit: "recall",
                p50_ms: quantile(&hybrid_ms, 0.50),
                p99_ms: quantile(&hybrid_ms, 0.99),
                note: format!(
                    "{n_chunks} chunks, searched {}; times are hybrid searches, by vector alone p50 {:.2} ms, p99 {:.2} ms",
                    vector.first().map_or("not at all", |answer| answer.how.as_str()),
                    quantile(&vector_ms, 0.50),
                    quantile(&vector_ms, 0.99)
                ),
            });
        }
    }
    serving.stop().await?;
    Ok(cases)
}

/// Reads the lines of a file of the corpus.
pub(super) fn lines(corpus: &Path, name: &str) -> anyhow::Result<Vec<String>> {
    let path = corpus.join(name);
    let file = std::fs::File::open(&path)
        .with_context(|| format!("{} cannot be read; scripts/corpus.sh makes it", path.display()))?;
    Ok(std::io::BufReader::new(file).lines().collect::<Result<_, _>>()?)
}

/// Reads enough pages for the wanted chunks, and the queries.
fn read(args: &Args) -> anyhow::Result<(Vec<Page>, Vec<String>)> {
    let (mut pages, mut n_chunks) = (Vec::new(), 0);
    for line in lines(&args.corpus, "corpus.jsonl")? {
        let page: Page = serde_json::from_str(&line)?;
        n_chunks += domain::text::chunks(&domain::text::normalise(&page.text)).len();
        pages.push(page);
        if n_chunks >= args.chunks {
            break;
        }
    }
    ensure!(n_chunks >= args.chunks, "the corpus has {n_chunks} chunks; {} are wanted", args.chunks);
    let queries: Vec<String> = lines(&args.corpus, "queries.txt")?.into_iter().take(args.queries).collect();
    ensure!(queries.len() == args.queries, "there are only {} queries", queries.len());
    Ok((pages, queries))
}

pub(super) async fn asker(env: &Env, name: &str) -> anyhow::Result<Asker> {
    let mut conn = env.db.acquire().await?;
    let tenant_id = tenants::create(&mut conn, name).await?;
    let (_, key) = keys::create(&mut conn, tenant_id, None, "bench", &[Scope::Read]).await?;
    Ok(Asker { tenant_id, key })
}

pub(super) async fn load(env: &Env, asker: &Asker, pages: impl Iterator<Item = &Page>) -> anyhow::Result<()> {
    let mut conn = env.db.acquire().await?;
    let source_id = sources::ensure_manual(&mut conn, asker.tenant_id).await?;
    drop(conn);
    let rare: DocumentType = RARE.parse().map_err(anyhow::Error::msg)?;
    let record = |(nth, page): (usize, &Page)| Record {
        title: page.title.clone(),
        ..Record::new(source_id, &page.id, if nth % 20 == 7 { rare.clone() } else { DocumentType::File }, &page.text)
    };
    let records: Vec<Record> = pages.enumerate().map(record).collect();
    let mut tasks = JoinSet::new();
    for batch in records.chunks(25) {
        while tasks.len() >= 3 {
            tasks.join_next().await.context("a task")???;
        }
        let (env, tenant_id, batch) = (env.clone(), asker.tenant_id, batch.to_vec());
        tasks.spawn(async move {
            let begin = || async { Ok(env.db.begin().await?) };
            let remembered = memory::remember(&env, tenant_id, batch, begin).await;
            let (tx, _) = remembered.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
            Ok::<_, anyhow::Error>(tx.commit().await?)
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    // A slow embedder leaves most of it to its lane.
    Runtime::new(env.clone(), &EMBED, &[]).run_due().await?;
    Ok(())
}

/// Does what the upkeep of a running installation does.
pub(super) async fn index(env: &Env) -> anyhow::Result<()> {
    let mut conn = env.db.acquire().await?;
    memory::postings::keep(env, 1).await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
    store::bench::analyze(&env.db).await?;
    maintain::count(&mut conn).await?;
    let begun = Instant::now();
    memory::codes::keep(env, 1).await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
    eprintln!("the codes of all vectors took {:.0?}", begun.elapsed());
    Ok(())
}

struct TimedAnswer {
    documents: Vec<Uuid>,
    how: String,
    took: Duration,
}

/// Every query once, in turn by each asker, a few at a time.
async fn ask_all(
    to: SocketAddr,
    askers: &[Asker],
    queries: &[String],
    mode: &str,
    is_filtered: bool,
) -> anyhow::Result<Vec<TimedAnswer>> {
    let filter = if is_filtered { format!("&type={RARE}") } else { String::new() };
    let request = |nth: usize| {
        let key = askers[nth % askers.len()].key.reveal();
        let query: String = queries[nth].bytes().map(|byte| format!("%{byte:02X}")).collect();
        format!(
            "GET /api/v1/search?k={K}&mode={mode}{filter}&q={query} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\r\n"
        )
    };
    let mut tasks = JoinSet::new();
    for first in 0..ASKING {
        let requests: Vec<(usize, String)> =
            (first..queries.len()).step_by(ASKING).map(|nth| (nth, request(nth))).collect();
        tasks.spawn(async move {
            let mut client = Client::connect(to).await?;
            let mut answers = Vec::new();
            for (nth, request) in requests {
                let asked = Instant::now();
                let answer = client.ask(request.as_bytes()).await?;
                let took = asked.elapsed();
                ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(answer.body));
                let said: serde_json::Value = serde_json::from_slice(answer.body)?;
                // Recall is that of the candidates, whether they fit or not.
                let hits = [&said["hits"], &said["closest"]].into_iter().filter_map(serde_json::Value::as_array);
                let documents = hits.flatten().filter_map(|hit| hit["document_id"].as_str()?.parse().ok()).collect();
                answers
                    .push((nth, TimedAnswer { documents, how: said["how"].as_str().unwrap_or_default().into(), took }));
            }
            Ok(answers)
        });
    }
    let mut answers = Vec::new();
    while let Some(done) = tasks.join_next().await {
        answers.extend(done??);
    }
    answers.sort_by_key(|(nth, _)| *nth);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

/// Every vector of a tenant, to be compared one by one.
struct Exact {
    rows: Vec<(Uuid, Vec<f32>)>,
}

impl Exact {
    pub(super) async fn load(env: &Env, tenant_id: TenantId, is_filtered: bool) -> anyhow::Result<Self> {
        let mut conn = env.db.acquire().await?;
        let table = VectorTable::new(&env.embedders.configured().model().name)?;
        let only = is_filtered.then_some(RARE);
        Ok(Self { rows: store::bench::vectors(&mut conn, tenant_id, &table, only).await? })
    }

    /// The share of the ten nearest documents that was found. A document as near as the tenth counts: equals have no order.
    fn recall(&self, query: &[f32], found: &[Uuid]) -> f64 {
        let mut best: HashMap<Uuid, f32> = HashMap::new();
        for (document, vector) in &self.rows {
            let similarity: f32 = vector.iter().zip(query).map(|(a, b)| a * b).sum();
            let slot = best.entry(*document).or_insert(f32::MIN);
            *slot = slot.max(similarity);
        }
        let mut ranked: Vec<f32> = best.values().copied().collect();
        ranked.sort_by(|a, b| b.total_cmp(a));
        let wanted = ranked.len().min(K);
        let Some(least) = wanted.checked_sub(1).map(|last| ranked[last] - 5e-4) else { return 1.0 };
        let good = found.iter().filter(|document| best.get(document).is_some_and(|similarity| *similarity >= least));
        good.count().min(wanted) as f64 / wanted as f64
    }
}
