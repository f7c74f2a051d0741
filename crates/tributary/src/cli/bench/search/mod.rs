//! Searches through the HTTP API over real manuals: the share of an exact search's first ten documents that they find, and how fast they are,
//! beside a bare statement and while others write.

mod ask;
mod backfill;
mod bare;
mod exact;
mod large;

use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use domain::{DocumentType, Record, Scope, Secret, TenantId};
use engine::bench::Case;
use engine::lanes::embed::Embed;
use engine::work::{LaneEntry, Runtime};
use engine::{Env, memory};
use serde::Deserialize;
use store::memory::maintain;
use store::{keys, sources, tenants};
use tokio::task::JoinSet;

use self::ask::{TimedAnswer, Times, ask_all};
use self::exact::Exact;
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
    /// Also measure one tenant with a million chunks, which takes a while.
    #[arg(long)]
    large: bool,
}

const K: usize = 10;
/// One document in twenty is of this type: what the filter leaves.
const RARE: &str = "manual.rare";
/// The number of callers that ask at once.
const ASKING: usize = 2;

static EMBED: [LaneEntry; 1] = [LaneEntry::of::<Embed>()];

#[derive(Clone, Deserialize)]
pub(super) struct Page {
    id: String,
    title: Option<String>,
    pub(super) text: String,
}

impl Page {
    fn n_chunks(&self) -> usize {
        domain::text::chunks(&domain::text::normalise(&self.text)).len()
    }
}

/// A query with its vector, which is made before any clock starts.
struct Question {
    text: String,
    vector: Vec<f32>,
}

/// A caller that searches, with its key.
pub(super) struct Asker {
    pub(super) tenant_id: TenantId,
    key: Secret,
}

pub async fn run(scratch: &Scratch, args: &Args) -> anyhow::Result<Vec<Case>> {
    let (pages, queries) = read(args)?;
    let (env, pages) = (&scratch.env, Arc::<[Page]>::from(pages));
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

    let (questions, embedding) = embed(env, queries).await?;
    let bare = bare::measure(env, one[0].tenant_id, &questions).await?;
    let serving = scratch.serve().await?;
    let to = serving.address;
    let mut cases = Vec::new();
    for (name, askers) in [("one tenant with all of it", one), ("ten tenants", ten), ("a tenant with 1%", small)] {
        for is_filtered in [false, true] {
            cases.push(Cell { name, askers, is_filtered }.measure(env, to, &questions).await?);
        }
    }
    let first = cases.first_mut().context("a cell")?;
    add_comparisons(first, &embedding, &bare);
    let (beside_bare, alone) = (bare::case(first, &bare), first.clone());
    cases.insert(1, beside_bare);
    cases.push(backfill::measure(env, to, one, &pages, &questions, &alone).await?);
    if args.large {
        cases.push(large::measure(env, to, args, &one[0], pages.len(), &questions).await?);
    }
    serving.stop().await?;
    Ok(cases)
}

/// Embeds the queries one after the other, and returns how long each took.
async fn embed(env: &Env, queries: Vec<String>) -> anyhow::Result<(Arc<[Question]>, Times)> {
    let embedder = env.embedders.configured();
    let (mut questions, mut times) = (Vec::with_capacity(queries.len()), Vec::with_capacity(queries.len()));
    for text in queries {
        let begun = Instant::now();
        let vector = embedder.embed_query(&text).await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
        times.push(begun.elapsed());
        questions.push(Question { text, vector });
    }
    Ok((questions.into(), Times::of(times)))
}

/// Says how much of a hybrid search's time is the embedding of its question, and how long the bare statement takes.
fn add_comparisons(case: &mut Case, embedding: &Times, bare: &Times) {
    case.note = format!(
        "{}; embedding the question is a part of each search and alone takes {}, which leaves p50 {:.2} ms of a hybrid search; \
         the bare statement takes {}, so a hybrid search takes {:.2} times its p50 and {:.2} times its p99",
        case.note,
        embedding.in_words(),
        case.p50_ms - embedding.p50(),
        bare.in_words(),
        case.p50_ms / bare.p50(),
        case.p99_ms / bare.p99(),
    );
}

/// Some tenants that are asked in turn, with the filter or without it.
struct Cell<'a> {
    name: &'a str,
    askers: &'a [Asker],
    is_filtered: bool,
}

impl Cell<'_> {
    async fn measure(&self, env: &Env, to: SocketAddr, questions: &[Question]) -> anyhow::Result<Case> {
        let &Self { name, askers, is_filtered } = self;
        let name = format!("{name}{}", if is_filtered { ", 5% filter" } else { "" });
        eprintln!("measuring {name}");
        let vector = ask_all(to, askers, questions, "vector", is_filtered).await?;
        let hybrid = ask_all(to, askers, questions, "hybrid", is_filtered).await?;
        let mut exact = Vec::new();
        for asker in askers {
            exact.push(Exact::load(env, asker.tenant_id, is_filtered).await?);
        }
        let mut found = 0.0;
        for (nth, answer) in vector.iter().enumerate() {
            found += exact[nth % askers.len()].recall(&questions[nth].vector, &answer.documents);
        }
        let n_chunks = exact.iter().map(Exact::n_chunks).sum();
        Ok(case(&name, n_chunks, found / vector.len() as f64, &vector, &hybrid))
    }
}

/// The recall of searches by vector alone, with the times of hybrid searches.
fn case(name: &str, n_chunks: usize, recall: f64, vector: &[TimedAnswer], hybrid: &[TimedAnswer]) -> Case {
    let [by_vector, both] = [vector, hybrid].map(|answers| Times::of(answers.iter().map(|answer| answer.took)));
    Case {
        case: format!("recall@{K}, {name}"),
        ours: recall,
        limit: 1.0,
        ratio: recall,
        unit: "recall",
        p50_ms: both.p50(),
        p99_ms: both.p99(),
        note: format!(
            "{n_chunks} chunks, searched {}; times are hybrid searches, by vector alone {}",
            vector.first().map_or("not at all", |answer| answer.how.as_str()),
            by_vector.in_words()
        ),
    }
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
        n_chunks += page.n_chunks();
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
    let tenant_id = match tenants::find(&mut conn, Some(name)).await? {
        Some(kept) => kept,
        None => tenants::create(&mut conn, name).await?,
    };
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
