//! Compares remember(), end to end with the in-process model, with a bare multi-row INSERT of the same rows and vectors into the same
//! tables.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::text::{self, Chunk};
use domain::{ChunkId, DocumentId, DocumentType, Record, SourceId, TenantId};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use store::memory::{NewChunk, Stored, VectorTable, chunks, documents};
use store::sources;
use uuid::Uuid;

use super::{Case, ROUNDS, Round, median};
use crate::{Env, memory};

const DOCUMENTS: usize = 4_000;
const BATCH: usize = 100;
const TASKS: usize = 3;

/// Runs the bench. The database must be the bench's own.
pub async fn remember(env: &Env, tenant_id: TenantId) -> anyhow::Result<Case> {
    let mut conn = env.db.acquire().await?;
    let source_id = sources::ensure_manual(&mut conn, tenant_id).await?;
    let (embedder, model) = (env.embedders.configured(), env.embedders.configured().model());
    store::memory::ensure_model(&mut conn, &model.name, model.dim, embedder.weight()).await?;
    drop(conn);
    embedder.embed_query("warm").await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
    let (mut ours, mut limit) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let prepared = prepare(env, batches(source_id, round, "bare")).await?;
        limit.push(run(env, tenant_id, prepared, bare).await?);
        ours.push(run(env, tenant_id, batches(source_id, round, "ours"), whole).await?);
    }
    let (ours, limit) = (median(ours), median(limit));
    let case = format!(
        "remember 1 KB texts with {}, beside a bare multi-row INSERT (batches of {BATCH}, {TASKS} at once)",
        model.name
    );
    Ok(Case::new(case, "documents/s", &ours, limit.rate))
}

/// Makes distinct texts of about 1 KB, with words as frequent and as rare as in a language.
fn batches(source_id: SourceId, round: usize, whose: &str) -> Vec<Vec<Record>> {
    let mut rng = StdRng::seed_from_u64(round as u64 * 2 + u64::from(whose == "ours"));
    let mut word = || {
        // Zipf's law: the frequency of the n-th most frequent word is proportional to 1/n.
        let nth = (20_000_f64.powf(rng.random_range(0.0..1.0))) as usize;
        let (mut left, mut word) = (nth * 7 + 11, String::new());
        for letters in ["bcdfglmnprst", "aeiou", "lmnrst", "aeiou", "dgkmnrst"] {
            word.push(letters.as_bytes()[left % letters.len()] as char);
            left /= letters.len();
            if left == 0 {
                break;
            }
        }
        word
    };
    let mut document = |n: usize| {
        let mut text = String::with_capacity(1_100);
        while text.len() < 1_000 {
            let words: Vec<String> = (0..12).map(|_| word()).collect();
            text.push_str(&words.join(" "));
            text.push_str(if text.len().is_multiple_of(5) { ".\n\n" } else { ". " });
        }
        Record {
            title: Some(format!("Note {n}")),
            ..Record::new(source_id, format!("{whose}-{round}-{n}"), DocumentType::Note, text)
        }
    };
    let all: Vec<Record> = (0..DOCUMENTS).map(&mut document).collect();
    all.chunks(BATCH).map(<[Record]>::to_vec).collect()
}

/// Runs `work` on batches, a few at once.
async fn run<B, F>(
    env: &Env,
    tenant_id: TenantId,
    batches: Vec<B>,
    work: impl Fn(Env, TenantId, B) -> F,
) -> anyhow::Result<Round>
where
    B: Send + 'static,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let queue = Arc::new(tokio::sync::Semaphore::new(TASKS));
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for batch in batches {
        let turn = queue.clone().acquire_owned().await?;
        let work = work(env.clone(), tenant_id, batch);
        tasks.spawn(async move {
            let begun = Instant::now();
            work.await?;
            drop(turn);
            Ok::<Duration, anyhow::Error>(begun.elapsed())
        });
    }
    let mut times_ms = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times_ms.push(done??.as_secs_f64() * 1_000.0);
    }
    Ok(Round { rate: DOCUMENTS as f64 / begun.elapsed().as_secs_f64(), times_ms })
}

async fn whole(env: Env, tenant_id: TenantId, batch: Vec<Record>) -> anyhow::Result<()> {
    let begin = || async { Ok(env.db.begin().await?) };
    let remembered = memory::remember(&env, tenant_id, batch, begin).await;
    let (tx, batch) = remembered.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
    tx.commit().await?;
    anyhow::ensure!(
        batch.records.iter().all(|document| document.change == memory::Change::Created && !document.is_pending)
    );
    Ok(())
}

/// A record's chunks and their vectors.
type Embedded = Vec<(Chunk, Vec<f32>)>;

/// A batch that is fully prepared, so that only writing remains.
struct Prepared {
    records: Vec<(Record, Embedded)>,
    model: String,
}

async fn prepare(env: &Env, batches: Vec<Vec<Record>>) -> anyhow::Result<Vec<Prepared>> {
    let (embedder, mut prepared) = (env.embedders.configured(), Vec::new());
    for batch in batches {
        let mut records = Vec::new();
        for record in batch {
            let chunks = text::chunks(&text::normalise(&record.text));
            let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
            let embedded = embedder.embed_documents(&texts).await.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
            records.push((record, chunks.into_iter().zip(embedded.vectors).collect()));
        }
        prepared.push(Prepared { records, model: embedder.model().name.clone() });
    }
    Ok(prepared)
}

async fn bare(env: Env, tenant_id: TenantId, batch: Prepared) -> anyhow::Result<()> {
    let table = VectorTable::new(&batch.model)?;
    let (mut rows, mut pieces, mut vectors) = (Vec::new(), Vec::new(), Vec::<(Uuid, Uuid, &[f32])>::new());
    for (record, made) in &batch.records {
        let (id, title) = (DocumentId::new(), record.title.as_deref());
        let (text, lang) = (record.text.as_str(), "simple");
        rows.push(Stored {
            id,
            record,
            version: None,
            title,
            text,
            lang,
            content_sha256: &made[0].0.hash,
            n_chunks: made.len(),
            embedding_model: Some(&batch.model),
        });
        for (ordinal, (chunk, vector)) in made.iter().enumerate() {
            let chunk_id = ChunkId::new();
            let (text, hash, occurrence) = (chunk.text.as_str(), &chunk.hash, chunk.occurrence);
            pieces.push(NewChunk {
                id: chunk_id,
                document_id: id,
                ordinal,
                title,
                lang,
                text,
                hash,
                occurrence,
                place: None,
            });
            vectors.push((chunk_id.0, id.0, vector));
        }
    }
    let mut tx = env.db.begin().await?;
    documents::insert(&mut tx, tenant_id, &rows).await?;
    chunks::insert(&mut tx, tenant_id, &pieces).await?;
    chunks::insert_vectors(&mut tx, tenant_id, &table, &vectors).await?;
    Ok(tx.commit().await?)
}
