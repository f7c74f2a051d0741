//! One tenant with a million chunks: the pages of the corpus that no other tenant has, and copies of the largest tenant's documents.

use std::net::SocketAddr;

use anyhow::ensure;
use domain::TenantId;
use engine::bench::Case;
use engine::{Env, memory};
use store::sources;

use super::ask::{TimedAnswer, ask_all};
use super::{Args, Asker, K, Page, Question, asker, case, exact, index, lines, load};

const CHUNKS: usize = 1_000_000;
/// The most queries that are asked: an exact search among a million takes about a second.
const QUERIES: usize = 300;

/// `n_pages`: so many pages of the corpus are in the memory of the `largest` tenant.
pub(super) async fn measure(
    env: &Env,
    to: SocketAddr,
    args: &Args,
    largest: &Asker,
    n_pages: usize,
    questions: &[Question],
) -> anyhow::Result<Case> {
    let asker = asker(env, "a million").await?;
    let pages = rest(args, n_pages)?;
    eprintln!("filling a tenant with {CHUNKS} chunks: {} pages, then copies; many minutes", pages.len());
    load(env, &asker, pages.iter()).await?;
    let n_chunks = fill(env, largest.tenant_id, asker.tenant_id).await?;
    for _ in 0..2 {
        // The first round makes many segments of the fresh chunks, the second makes one of many.
        memory::postings::keep(env, 1).await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
    }
    index(env).await?;

    let name = "one tenant with a million chunks";
    eprintln!("measuring {name}");
    let (asker, questions) = (std::slice::from_ref(&asker), &questions[..questions.len().min(QUERIES)]);
    let vector = ask_all(to, asker, questions, "vector", false).await?;
    let hybrid = ask_all(to, asker, questions, "hybrid", false).await?;
    let recall = recall(env, asker[0].tenant_id, questions, &vector).await?;
    Ok(case(name, n_chunks, recall, &vector, &hybrid))
}

/// Reads the pages of the corpus after the first `n_pages`, up to a million chunks.
fn rest(args: &Args, n_pages: usize) -> anyhow::Result<Vec<Page>> {
    let (mut pages, mut n_chunks) = (Vec::new(), 0);
    for line in lines(&args.corpus, "corpus.jsonl")?.iter().skip(n_pages) {
        if n_chunks >= CHUNKS {
            break;
        }
        let page: Page = serde_json::from_str(line)?;
        n_chunks += page.n_chunks();
        pages.push(page);
    }
    Ok(pages)
}

/// Copies one tenant's documents into the memory of another again and again, until that has a million chunks. Returns how many it has.
async fn fill(env: &Env, from: TenantId, to: TenantId) -> anyhow::Result<usize> {
    let (table, mut conn) = (exact::table(env)?, env.db.acquire().await?);
    let langs = store::memory::tenant(&mut conn, from).await?.langs;
    let langs: Vec<&str> = langs.iter().map(String::as_str).collect();
    store::memory::ensure_tenant(&mut conn, to, table.model(), &langs).await?;
    sources::ensure_manual(&mut conn, to).await?;
    drop(conn);
    let mut owner = store::bench::owner(&env.db).await?;
    let mut n_chunks = usize::try_from(store::bench::count_chunks(&mut owner, to).await?)?;
    for nth in 1.. {
        if n_chunks >= CHUNKS {
            break;
        }
        let n_missing = i64::try_from(CHUNKS - n_chunks)?;
        eprintln!("{n_chunks} chunks; copy {nth}");
        let n_copied = store::bench::copy_documents(&mut owner, &table, from, to, nth, n_missing).await?;
        ensure!(n_copied > 0, "there is nothing to copy");
        n_chunks += n_copied;
    }
    Ok(n_chunks)
}

/// The mean share of the ten nearest documents that was found. The database compares: a million vectors are too many to be loaded.
async fn recall(
    env: &Env,
    tenant_id: TenantId,
    questions: &[Question],
    answers: &[TimedAnswer],
) -> anyhow::Result<f64> {
    let (table, mut owner) = (exact::table(env)?, store::bench::owner(&env.db).await?);
    let mut sum = 0.0;
    for (question, answer) in questions.iter().zip(answers) {
        let (nearest, found) =
            store::bench::similarities(&mut owner, tenant_id, &table, &question.vector, K, &answer.documents).await?;
        sum += exact::share(&nearest, &found);
    }
    Ok(sum / answers.len() as f64)
}
