//! Whether questions find the document that answers them: by keyword, by vector and by both, beside textbook BM25 over the same chunks.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use domain::Caller;
use engine::Env;
use engine::bench::{Case, quantile};
use engine::memory::recall::{self, Hit, Query};
use serde::Deserialize;
use store::memory::Mode;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::scratch::Scratch;
use super::search::{Asker, Page, asker, index, lines, load};

#[derive(clap::Args)]
pub struct Args {
    /// Folder with relevance.jsonl and questions.jsonl; `scripts/corpus.sh` makes it.
    #[arg(long, env = "CORPUS_DIR")]
    corpus: PathBuf,
    /// The number of chunks among which the answers are looked for. They are also looked for among themselves alone.
    #[arg(long, default_value_t = 100_000)]
    chunks: usize,
    /// The questions to ask: `held` were never used for tuning, `tune` were.
    #[arg(long, default_value = "held", value_parser = ["held", "tune", "all"])]
    part: String,
    /// Measure among the documents that answer questions alone.
    #[arg(long)]
    gold_only: bool,
    /// Keep the database, and go on with it next time: a run that was stopped, or is repeated, makes no vector twice.
    #[arg(long)]
    pub keep: bool,
}

/// The reciprocal rank counts among so many hits.
const RANKED: usize = 100;
const ASKING: usize = 2;
const MODES: [Mode; 3] = [Mode::Keyword, Mode::Vector, Mode::Hybrid];

#[derive(Deserialize)]
struct Section {
    #[serde(flatten)]
    page: Page,
    gold: bool,
}

#[derive(Clone, Deserialize)]
struct Question {
    kind: String,
    part: Option<String>,
    text: String,
    /// The document that answers it, if one does.
    document: Option<String>,
}

pub async fn run(scratch: &Scratch, args: &Args) -> anyhow::Result<Vec<Case>> {
    let (pages, n_gold) = read(args)?;
    let questions: Vec<Question> = lines(&args.corpus, "questions.jsonl")?
        .iter()
        .map(|line| serde_json::from_str(line))
        .collect::<Result<_, _>>()?;
    let (unanswerable, questions): (Vec<_>, Vec<_>) =
        questions.into_iter().partition(|question| question.document.is_none());
    let is_asked = |question: &Question| args.part == "all" || question.part.as_deref() == Some(args.part.as_str());
    let questions: Arc<[Question]> = questions.into_iter().filter(is_asked).collect();
    let unanswerable: Arc<[Question]> = unanswerable.into();
    ensure!(!questions.is_empty(), "there is no question of the part {}", args.part);
    let mut cases = Vec::new();
    for (name, pages) in [("alone", &pages[..n_gold]), ("among all", &pages[..])] {
        if pages.len() == n_gold && name != "alone" {
            break;
        }
        let asker = asker(&scratch.env, name).await?;
        eprintln!("remembering {} documents; with a slow embedder an hour", pages.len());
        load(&scratch.env, &asker, pages.iter()).await?;
        index(&scratch.env).await?;
        eprintln!("asking {} questions", questions.len());
        cases.extend(measure(&scratch.env, &asker, name, &questions, &unanswerable).await?);
    }
    Ok(cases)
}

/// Reads enough sections for the wanted chunks, those that answer questions first, and returns how many do.
fn read(args: &Args) -> anyhow::Result<(Vec<Page>, usize)> {
    let (mut pages, mut n_gold, mut n_chunks) = (Vec::new(), 0, 0);
    for line in lines(&args.corpus, "relevance.jsonl")? {
        let Section { page, gold } = serde_json::from_str(&line)?;
        if !gold && (args.gold_only || n_chunks >= args.chunks) {
            break;
        }
        n_gold += usize::from(gold);
        n_chunks += domain::text::chunks(&domain::text::normalise(&page.text)).len();
        pages.push(page);
    }
    Ok((pages, n_gold))
}

/// The ranks of the right documents, by kind of question. None: not found.
#[derive(Default)]
struct Ranks(BTreeMap<String, Vec<Option<usize>>>);

impl Ranks {
    fn add(&mut self, kind: &str, rank: Option<usize>) {
        self.0.entry(kind.to_owned()).or_default().push(rank);
    }
}

/// The mean reciprocal rank, and the share that is among the first ten.
fn figures(ranks: &[Option<usize>]) -> (f64, f64) {
    let n = ranks.len().max(1) as f64;
    let found = ranks.iter().flatten();
    let reciprocal: f64 = found.clone().map(|rank| 1.0 / *rank as f64).sum();
    (reciprocal / n, found.filter(|rank| **rank <= 10).count() as f64 / n)
}

async fn measure(
    env: &Env,
    asker: &Asker,
    name: &str,
    questions: &Arc<[Question]>,
    unanswerable: &Arc<[Question]>,
) -> anyhow::Result<Vec<Case>> {
    let textbook = Textbook::load(env, asker).await?;
    let mut limit = Ranks::default();
    for question in questions.iter() {
        limit.add(&question.kind, textbook.rank(env, question).await?);
    }
    let n_chunks = textbook.n_chunks();
    let documents: Arc<HashMap<String, Uuid>> =
        Arc::new(textbook.names.iter().map(|(id, name)| (name.clone(), *id)).collect());
    drop(textbook);
    let mut cases = Vec::new();
    for mode in MODES {
        let asked = ask(env, asker, questions, &documents, mode).await?;
        for (kind, ranks) in &asked.ranks.0 {
            let ((mrr, recall), (limit_mrr, limit_recall)) = (figures(ranks), figures(&limit.0[kind]));
            cases.push(Case {
                case: format!("{kind}, {} questions, {name}: {}", ranks.len(), mode.as_str()),
                ours: recall,
                limit: limit_recall,
                ratio: recall / limit_recall.max(f64::MIN_POSITIVE),
                unit: "recall@10",
                p50_ms: quantile(&asked.times, 0.50),
                p99_ms: quantile(&asked.times, 0.99),
                note: format!("MRR {mrr:.3}; textbook BM25 {limit_mrr:.3}; {n_chunks} chunks"),
            });
        }
        let recall = |ranks: &Ranks| figures(&ranks.0.values().flatten().copied().collect::<Vec<_>>()).1;
        let (ours, without) = (recall(&asked.ranks), recall(&asked.without_floor));
        cases.push(Case {
            case: format!("all that have an answer, {name}: {}, with the floor", mode.as_str()),
            ours,
            limit: without,
            ratio: ours / without.max(f64::MIN_POSITIVE),
            unit: "recall@10",
            p50_ms: quantile(&asked.times, 0.50),
            p99_ms: quantile(&asked.times, 0.99),
            note: "compared with the same searches if what does not fit were shown, too".into(),
        });
        if unanswerable.is_empty() {
            continue;
        }
        let asked = ask(env, asker, unanswerable, &documents, mode).await?;
        let told = asked.n_nothing_fits as f64 / unanswerable.len() as f64;
        cases.push(Case {
            case: format!("{} questions without an answer, {name}: {}", unanswerable.len(), mode.as_str()),
            ours: told,
            limit: 1.0,
            ratio: told,
            unit: "said so",
            p50_ms: quantile(&asked.times, 0.50),
            p99_ms: quantile(&asked.times, 0.99),
            note: String::new(),
        });
    }
    Ok(cases)
}

/// The outcome of some questions.
#[derive(Default)]
struct Asked {
    /// The places of the right documents.
    ranks: Ranks,
    /// The same if what does not fit counts, too.
    without_floor: Ranks,
    n_nothing_fits: usize,
    /// The times of the searches in milliseconds, sorted.
    times: Vec<f64>,
}

/// Asks every question, two at a time.
async fn ask(
    env: &Env,
    asker: &Asker,
    questions: &Arc<[Question]>,
    documents: &Arc<HashMap<String, Uuid>>,
    mode: Mode,
) -> anyhow::Result<Asked> {
    let mut tasks = JoinSet::new();
    for first in 0..ASKING {
        let (env, questions, documents) = (env.clone(), questions.clone(), documents.clone());
        let caller = Caller::local("bench", asker.tenant_id, false);
        tasks.spawn(async move {
            let mut answers = Vec::new();
            for question in questions.iter().skip(first).step_by(ASKING) {
                let query = Query { text: question.text.clone(), k: RANKED, mode, ..Query::default() };
                let asked = Instant::now();
                let answer = recall::search(&env, &caller, &query).await?;
                let took = asked.elapsed().as_secs_f64() * 1_000.0;
                let right = question.document.as_ref().and_then(|name| documents.get(name));
                let is_right = |hit: &Hit| {
                    let copies = hit.others.iter().map(|copy| copy.document_id);
                    std::iter::once(hit.document_id).chain(copies).any(|id| Some(&id) == right)
                };
                let place = |hits: &[Hit]| hits.iter().position(is_right).map(|at| at + 1);
                let rank = place(&answer.hits);
                let without_floor = rank.or_else(|| place(&answer.closest));
                answers.push((question.kind.clone(), rank, without_floor, answer.is_nothing_fitting, took));
            }
            anyhow::Ok(answers)
        });
    }
    let mut all = Asked::default();
    while let Some(answers) = tasks.join_next().await {
        for (kind, rank, without_floor, is_nothing_fitting, took) in answers?? {
            all.ranks.add(&kind, rank);
            all.without_floor.add(&kind, without_floor);
            all.n_nothing_fits += usize::from(is_nothing_fitting);
            all.times.push(took);
        }
    }
    all.times.sort_by(f64::total_cmp);
    Ok(all)
}

/// BM25 as textbooks have it, over the same chunks: every chunk is a text of its title and its words, stems without stop words.
struct Textbook {
    /// The document of each chunk, and its length.
    chunks: Vec<(Uuid, f64)>,
    /// By lexeme: the chunks that have it, and how often.
    postings: HashMap<String, Vec<(usize, f64)>>,
    names: HashMap<Uuid, String>,
    mean: f64,
}

impl Textbook {
    async fn load(env: &Env, asker: &Asker) -> anyhow::Result<Self> {
        let mut conn = env.db.acquire().await?;
        let mut book = Self { chunks: Vec::new(), postings: HashMap::new(), names: HashMap::new(), mean: 1.0 };
        let mut after = Uuid::nil();
        loop {
            let rows = store::bench::chunk_words(&mut conn, asker.tenant_id, after).await?;
            let Some(last) = rows.last() else { break };
            after = last.id;
            for row in rows {
                let nth = book.chunks.len();
                book.chunks.push((row.document_id, row.counts.iter().map(|n| f64::from(*n)).sum()));
                book.names.entry(row.document_id).or_insert(row.external_id);
                for (lexeme, count) in row.lexemes.into_iter().zip(row.counts) {
                    book.postings.entry(lexeme).or_default().push((nth, f64::from(count)));
                }
            }
        }
        book.mean = book.chunks.iter().map(|(_, length)| length).sum::<f64>() / book.chunks.len().max(1) as f64;
        Ok(book)
    }

    fn n_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The place of the right document, from 1, each document by its best chunk.
    async fn rank(&self, env: &Env, question: &Question) -> anyhow::Result<Option<usize>> {
        let mut conn = env.db.acquire().await?;
        let words = store::bench::words(&mut conn, &question.text).await?;
        let total = self.chunks.len() as f64;
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for postings in words.iter().filter_map(|word| self.postings.get(word)) {
            let n = postings.len() as f64;
            let rarity = (1.0 + (total - n + 0.5) / (n + 0.5)).ln();
            for (nth, count) in postings {
                let discount = 1.0 - 0.75 + 0.75 * self.chunks[*nth].1 / self.mean;
                *scores.entry(*nth).or_default() += rarity * count * 2.2 / (count + 1.2 * discount);
            }
        }
        let mut best: HashMap<Uuid, f64> = HashMap::new();
        for (nth, score) in scores {
            let slot = best.entry(self.chunks[nth].0).or_default();
            *slot = slot.max(score);
        }
        let right = question.document.as_ref().context("a question without an answer")?;
        let score = best.iter().find(|(document, _)| self.names.get(document) == Some(right)).map(|(_, score)| *score);
        Ok(score.map(|score| best.values().filter(|other| **other > score).count() + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_ranks() {
        let (mrr, recall) = figures(&[Some(1), Some(4), Some(20), None]);
        assert!((mrr - 1.3 / 4.0).abs() < 1e-9 && (recall - 0.5).abs() < 1e-9, "{mrr} {recall}");
        assert_eq!(figures(&[]), (0.0, 0.0));
    }
}
