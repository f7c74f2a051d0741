//! The one way into memory. A batch is compared with what is stored, what changed is cut and embedded, and then one transaction, the
//! caller's own, writes all of it.
//!
//! Nothing is locked while a text is embedded, so the world may move meanwhile: under lock everything is compared again. A newer version
//! that came first is left alone; a text that changed since we looked sends the batch round once more, with the vectors it has.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use domain::text::{self, Chunk};
use domain::{ChunkId, DocumentId, Fault, Notice, Op, Record, TenantId};
use store::Tx;
use store::crash::{self, Point};
use store::memory::{Kept, Moved, NewChunk, Seen, Stored, VectorTable, chunks, documents, mentions};
use store::queue::Queue;
use store::spend::{self, Spent};
use uuid::Uuid;

use super::{Reservation, reserve};
use crate::Env;
use crate::lanes::embed::Embed;
use crate::work::Lane as _;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    Created,
    Updated,
    /// The same text: at most payload and times moved.
    Unchanged,
    /// A newer version is stored, or deleted it.
    Superseded,
    Deleted,
}

#[derive(Clone, Debug)]
pub struct Remembered {
    pub id: DocumentId,
    pub change: Change,
    pub n_chunks: usize,
    /// How many of them were embedded for this.
    pub n_embedded: usize,
    /// Some vectors are missing: found by keyword, and the embed lane has been told.
    pub is_pending: bool,
}

/// What became of a batch.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// In the order of its records.
    pub records: Vec<Remembered>,
    pub spent: Spent,
}

/// How often a batch goes round because others write the same documents.
const MOST_ROUNDS: usize = 5;

/// How many rows one statement writes.
const SLICE: usize = 2_000;

/// Remembers a batch in the transaction that `begin` opens, and returns it still open: what the caller adds commits with it, or
/// nothing does. Safe to repeat: the same records change nothing the second time.
pub async fn remember<T, F>(
    env: &Env,
    tenant_id: TenantId,
    records: Vec<Record>,
    begin: impl Fn() -> F,
) -> Result<(T, Batch), Fault>
where
    T: AsMut<Tx>,
    F: Future<Output = Result<T, Fault>>,
{
    let begun = Instant::now();
    let texts: Vec<Text> = records.into_iter().map(Text::of).collect();
    took("normalise", begun);
    let mut vectors = Vectors::default();
    let remembered = rounds(env, tenant_id, &texts, &mut vectors, begin).await;
    if remembered.is_err() {
        vectors.settle_alone(env, tenant_id).await;
    }
    remembered
}

async fn rounds<T, F>(
    env: &Env,
    tenant_id: TenantId,
    texts: &[Text],
    vectors: &mut Vectors,
    begin: impl Fn() -> F,
) -> Result<(T, Batch), Fault>
where
    T: AsMut<Tx>,
    F: Future<Output = Result<T, Fault>>,
{
    let winners = winners(texts);
    for _ in 0..MOST_ROUNDS {
        let plan = Plan::make(env, tenant_id, texts, &winners, vectors).await?;
        crash::at(Point::RememberPrepared)?;
        let mut opened = begin().await?;
        let begun = Instant::now();
        if plan.write(opened.as_mut()).await? {
            took("write", begun);
            crash::at(Point::RememberWritten)?;
            let batch = Batch { records: plan.outcomes(), spent: plan.spent() };
            count(&batch.records);
            return Ok((opened, batch));
        }
    }
    Err(Fault::Transient(anyhow::anyhow!("others keep writing the same documents")))
}

/// A record in its normal form.
struct Text {
    record: Record,
    title: Option<String>,
    text: String,
    sha256: [u8; 32],
}

impl Text {
    fn of(mut record: Record) -> Self {
        let (title, text) = if record.is_deleted {
            record.raw_payload = None; // what a deleted document said goes
            (None, String::new())
        } else {
            let title = record.title.as_deref().map(text::normalise).filter(|title| !title.is_empty());
            (title, text::normalise(&record.text))
        };
        if let Some(payload) = &mut record.raw_payload {
            text::replace_nul_in(payload);
        }
        text::replace_nul_in(&mut record.source_metadata);
        let sha256 = text::sha256(&format!("{}\0{text}", title.as_deref().unwrap_or_default()));
        Self { record, title, text, sha256 }
    }

    fn key(&self) -> (Uuid, &str) {
        (self.record.source_id.0, &self.record.external_id)
    }
}

/// Of several versions of one document in a batch, the newest, else the last: its index.
fn winners(texts: &[Text]) -> Vec<usize> {
    let mut best: HashMap<(Uuid, &str), usize> = HashMap::new();
    for (index, text) in texts.iter().enumerate() {
        let slot = best.entry(text.key()).or_insert(index);
        let (held, new) = (texts[*slot].record.source_version, text.record.source_version);
        if !matches!((held, new), (Some(held), Some(new)) if held > new) {
            *slot = index;
        }
    }
    let mut winners: Vec<usize> = best.into_values().collect();
    winners.sort_unstable();
    winners
}

/// Vectors by what they were made of: a batch that goes round, or says the same twice, pays once.
#[derive(Default)]
struct Vectors {
    by_hash: HashMap<[u8; 32], Vec<f32>>,
    spent: Spent,
    reservations: Vec<Uuid>,
}

impl Vectors {
    /// Embeds what is missing. Where the embedder is away or wrong, or the month's money is spent, the vectors stay missing, and that is all.
    async fn fill<'a>(
        &mut self,
        env: &Env,
        tenant_id: TenantId,
        wanted: impl Iterator<Item = &'a Chunk>,
    ) -> Result<(), Fault> {
        let mut known = HashSet::new();
        let missing: Vec<&Chunk> =
            wanted.filter(|chunk| !self.by_hash.contains_key(&chunk.hash) && known.insert(chunk.hash)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let texts: Vec<&str> = missing.iter().map(|chunk| chunk.text.as_str()).collect();
        let postponed = |n: usize, why: &str| {
            tracing::warn!("{n} texts wait for their vectors: {why}");
            metrics::counter!("tributary_embed_postponed_total").increment(n as u64);
        };
        match reserve(env, tenant_id, texts.iter().map(|text| text.len()).sum()).await? {
            Reservation::Free => {}
            Reservation::Held(id) => self.reservations.push(id),
            Reservation::Busy => {
                postponed(texts.len(), "others' calls may use up what is left of this month's money");
                return Ok(());
            }
            Reservation::Spent => {
                postponed(texts.len(), "what they may cost this month is spent");
                return Ok(());
            }
        }
        match env.embedder.embed(&texts).await {
            Ok(embedded) => {
                let n_missing = texts.len() - embedded.vectors.len();
                self.by_hash.extend(missing.iter().map(|chunk| chunk.hash).zip(embedded.vectors));
                self.spent += embedded.spent;
                if let Some(fault) = embedded.fault {
                    postponed(n_missing, &fault.in_words());
                }
            }
            Err(fault) => postponed(texts.len(), &fault.in_words()),
        }
        Ok(())
    }

    /// What a batch that is not written has cost is paid all the same.
    async fn settle_alone(&self, env: &Env, tenant_id: TenantId) {
        if !env.embedder.is_service() || self.spent.calls == 0 {
            return;
        }
        let (at, model) = (env.clock.sql(), &env.embedder.model().name);
        let settled = async {
            let mut conn = env.db.acquire().await?;
            spend::settle(&mut conn, at, tenant_id, model, &self.reservations, &self.spent).await
        };
        if let Err(error) = settled.await {
            tracing::warn!(error = ?error, "what vectors cost that nobody kept was not written down");
        }
    }
}

/// What a batch will write, made before any transaction opens.
struct Plan<'a> {
    env: &'a Env,
    tenant_id: TenantId,
    table: VectorTable,
    texts: &'a [Text],
    steps: Vec<Step<'a>>,
    vectors: &'a Vectors,
    /// The tenant has no memory yet, or not in these languages.
    new_langs: Option<Vec<&'a str>>,
}

struct Step<'a> {
    text: &'a Text,
    index: usize,
    id: DocumentId,
    seen: Option<Seen>,
    change: Change,
    lang: &'a str,
    chunks: Vec<Chunk>,
    /// Which stored chunk each of `chunks` is.
    kept: Vec<Option<Kept>>,
    gone: Vec<Uuid>,
    is_pending: bool,
}

impl<'a> Plan<'a> {
    async fn make(
        env: &'a Env,
        tenant_id: TenantId,
        texts: &'a [Text],
        winners: &[usize],
        vectors: &'a mut Vectors,
    ) -> Result<Self, Fault> {
        let begun = Instant::now();
        let model = env.embedder.model();
        let table = VectorTable::new(&model.name)?;
        let mut conn = env.db.acquire().await?;
        let tenant = store::memory::tenant(&mut conn, tenant_id, &model.name).await?;
        if !tenant.is_model_known {
            store::memory::ensure_model(&mut conn, &model.name, model.dim, env.embedder.weight()).await?;
        }
        let records: Vec<&Record> = winners.iter().map(|index| &texts[*index].record).collect();
        let seen = documents::look(&mut conn, tenant_id, &records).await?;
        let mut seen: HashMap<(Uuid, String), Seen> =
            seen.into_iter().map(|seen| ((seen.source_id, seen.external_id.clone()), seen)).collect();
        took("look", begun);
        let begun = Instant::now();
        let mut steps: Vec<Step> = winners
            .iter()
            .map(|index| {
                let text = &texts[*index];
                let seen = seen.remove(&(text.record.source_id.0, text.record.external_id.clone()));
                Step::new(*index, text, seen, &model.name, env.config.text_lang.as_str())
            })
            .collect();
        took("cut", begun);

        let begun = Instant::now();
        let rewritten: Vec<Uuid> = steps
            .iter()
            .filter(|step| matches!(step.change, Change::Updated | Change::Deleted))
            .filter_map(|step| step.seen.as_ref().map(|seen| seen.id))
            .collect();
        let mut stored: HashMap<Uuid, Vec<Kept>> = HashMap::new();
        if !rewritten.is_empty() {
            for kept in chunks::of_documents(&mut conn, tenant_id, &table, &rewritten).await? {
                stored.entry(kept.document_id).or_default().push(kept);
            }
        }
        drop(conn); // no session is held while a text is embedded
        took("compare", begun);
        for step in &mut steps {
            step.match_chunks(stored.remove(&step.id.0).unwrap_or_default());
        }
        let begun = Instant::now();
        vectors.fill(env, tenant_id, steps.iter().flat_map(Step::wanting)).await?;
        took("embed", begun);
        for step in &mut steps {
            let is_pending = step.wanting().any(|chunk| !vectors.by_hash.contains_key(&chunk.hash));
            step.is_pending = is_pending;
        }
        let langs: HashSet<&str> = steps.iter().map(|step| step.lang).collect();
        let is_new = tenant.model.is_none() || langs.iter().any(|lang| !tenant.langs.iter().any(|known| known == lang));
        let new_langs = is_new.then(|| langs.into_iter().collect());
        Ok(Self { env, tenant_id, table, texts, steps, vectors, new_langs })
    }

    /// Writes everything; `false` when somebody else wrote one of the documents since we looked, and nothing may be kept.
    async fn write(&self, tx: &mut Tx) -> Result<bool, Fault> {
        if let Some(langs) = &self.new_langs {
            store::memory::ensure_tenant(tx, self.tenant_id, self.table.model(), langs).await?;
        }
        let new: Vec<Stored> =
            self.steps.iter().filter(|step| step.seen.is_none()).map(|step| self.stored(step)).collect();
        if !new.is_empty() && documents::insert(tx, self.tenant_id, &new).await?.len() < new.len() {
            return Ok(false);
        }
        let old: Vec<Uuid> = self.steps.iter().filter_map(|step| step.seen.as_ref()).map(|seen| seen.id).collect();
        if !old.is_empty() {
            let now = documents::lock(tx, self.tenant_id, &old).await?;
            let is_as_seen = |seen: &Seen| now.iter().any(|now| now == seen);
            if !self.steps.iter().filter_map(|step| step.seen.as_ref()).all(is_as_seen) {
                return Ok(false);
            }
        }
        let of = |change: Change| self.steps.iter().filter(move |step| step.change == change);
        let same: Vec<(Uuid, &Record)> = of(Change::Unchanged).map(|step| (step.id.0, &step.text.record)).collect();
        let touched = if same.is_empty() { Vec::new() } else { documents::touch(tx, self.tenant_id, &same).await? };
        let changed: Vec<Stored> = self
            .steps
            .iter()
            .filter(|step| step.seen.is_some() && matches!(step.change, Change::Updated | Change::Deleted))
            .map(|step| self.stored(step))
            .collect();
        if !changed.is_empty() {
            documents::update(tx, self.tenant_id, &changed).await?;
        }
        self.write_chunks(tx).await?;
        let is_written = |step: &&Step| match step.change {
            Change::Unchanged => touched.contains(&step.id.0),
            Change::Superseded => false,
            Change::Created | Change::Updated | Change::Deleted => true,
        };
        let mentioning: Vec<&Record> = self
            .steps
            .iter()
            .filter(is_written)
            .map(|step| &step.text.record)
            .filter(|record| record.mentions.is_some())
            .collect();
        if !mentioning.is_empty() {
            mentions::replace(tx, self.tenant_id, &mentioning).await?;
        }
        let pending: Vec<Embed> =
            self.steps.iter().filter(|step| step.is_pending).map(|step| Embed { document_id: step.id }).collect();
        if !pending.is_empty() {
            Queue::new(Embed::NAME)?.send(tx, self.tenant_id, &pending).await?;
        }
        if self.env.embedder.is_service() && self.vectors.spent.calls > 0 {
            let (at, model) = (self.env.clock.sql(), self.table.model());
            spend::settle(tx, at, self.tenant_id, model, &self.vectors.reservations, &self.spent()).await?;
        }
        if self.steps.iter().any(|step| !matches!(step.change, Change::Unchanged | Change::Superseded)) {
            tx.notify(Notice {
                tenant_id: Some(self.tenant_id),
                kind: "documents".into(),
                id: String::new(),
                op: Op::Update,
                ids: Vec::new(),
            });
        }
        Ok(true)
    }

    async fn write_chunks(&self, tx: &mut Tx) -> Result<(), Fault> {
        let (mut new, mut moved, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        let mut vectors: Vec<(Uuid, Uuid, &[f32])> = Vec::new();
        for step in &self.steps {
            gone.extend(&step.gone);
            for (ordinal, (chunk, kept)) in step.chunks.iter().zip(&step.kept).enumerate() {
                let (title, lang) = (step.text.title.as_deref(), step.lang);
                let id = match kept {
                    Some(kept) => {
                        moved.push(Moved { id: kept.id, ordinal, title, lang });
                        kept.id
                    }
                    None => {
                        let id = ChunkId::new();
                        let Chunk { text, hash, occurrence } = chunk;
                        let document_id = step.id;
                        new.push(NewChunk {
                            id,
                            document_id,
                            ordinal,
                            title,
                            lang,
                            text,
                            hash,
                            occurrence: *occurrence,
                        });
                        id.0
                    }
                };
                if kept.as_ref().is_none_or(|kept| !kept.has_vector)
                    && let Some(vector) = self.vectors.by_hash.get(&chunk.hash)
                {
                    vectors.push((id, step.id.0, vector));
                }
            }
        }
        if !gone.is_empty() {
            chunks::remove(tx, self.tenant_id, &gone).await?;
        }
        if !moved.is_empty() {
            chunks::move_kept(tx, self.tenant_id, &moved).await?;
        }
        // A large file in slices: each statement has its time limit.
        for slice in new.chunks(SLICE) {
            chunks::insert(tx, self.tenant_id, slice).await?;
        }
        for slice in vectors.chunks(SLICE) {
            chunks::insert_vectors(tx, self.tenant_id, &self.table, slice).await?;
        }
        Ok(())
    }

    fn stored<'s>(&'s self, step: &'s Step<'a>) -> Stored<'s> {
        let has_vectors = !step.is_pending && !step.chunks.is_empty();
        Stored {
            id: step.id,
            record: &step.text.record,
            title: step.text.title.as_deref(),
            text: &step.text.text,
            lang: step.lang,
            content_sha256: &step.text.sha256,
            n_chunks: step.chunks.len(),
            embedding_model: has_vectors.then(|| self.table.model()),
        }
    }

    /// What the batch's vectors took, in all rounds.
    fn spent(&self) -> Spent {
        let n_documents = self.steps.iter().filter(|step| step.n_embedded(self.vectors) > 0).count();
        Spent { documents: i64::try_from(n_documents).unwrap_or(i64::MAX), ..self.vectors.spent }
    }

    /// In the order of the records; a record that another of the batch outdid is superseded.
    fn outcomes(&self) -> Vec<Remembered> {
        let by_key: HashMap<(Uuid, &str), &Step> = self.steps.iter().map(|step| (step.text.key(), step)).collect();
        let mut outcomes = Vec::with_capacity(self.texts.len());
        for (index, text) in self.texts.iter().enumerate() {
            let Some(step) = by_key.get(&text.key()) else { continue };
            let is_winner = step.index == index;
            outcomes.push(Remembered {
                id: step.id,
                change: if is_winner { step.change } else { Change::Superseded },
                n_chunks: step.chunks.len(),
                n_embedded: if is_winner { step.n_embedded(self.vectors) } else { 0 },
                is_pending: step.is_pending,
            });
        }
        outcomes
    }
}

impl<'a> Step<'a> {
    fn new(index: usize, text: &'a Text, seen: Option<Seen>, model: &str, default_lang: &'a str) -> Self {
        let id = seen.as_ref().map_or_else(DocumentId::new, |seen| DocumentId(seen.id));
        let change = match &seen {
            Some(seen) if is_newer(seen.source_version, text.record.source_version) => Change::Superseded,
            Some(seen) if text.record.is_deleted && seen.is_deleted => Change::Unchanged,
            _ if text.record.is_deleted => Change::Deleted,
            None => Change::Created,
            Some(seen) if seen.is_deleted || seen.content_sha256 != text.sha256 => Change::Updated,
            // The same text: only vectors may be missing, or be another model's.
            Some(seen) if seen.n_chunks > 0 && seen.embedding_model.as_deref() != Some(model) => Change::Updated,
            Some(_) => Change::Unchanged,
        };
        let is_cut = matches!(change, Change::Created | Change::Updated);
        let chunks = if is_cut { text::chunks(&text.text) } else { Vec::new() };
        let lang = text::detect_lang(&text.text).unwrap_or(default_lang);
        Self { text, index, id, seen, change, lang, chunks, kept: Vec::new(), gone: Vec::new(), is_pending: false }
    }

    /// Finds each chunk among those stored; what is left over goes.
    fn match_chunks(&mut self, stored: Vec<Kept>) {
        let mut stored: HashMap<(Vec<u8>, i32), Kept> =
            stored.into_iter().map(|kept| ((kept.hash.clone(), kept.occurrence), kept)).collect();
        self.kept = self.chunks.iter().map(|chunk| stored.remove(&(chunk.hash.to_vec(), chunk.occurrence))).collect();
        self.gone = stored.into_values().map(|kept| kept.id).collect();
    }

    /// Chunks without a vector.
    fn wanting(&self) -> impl Iterator<Item = &Chunk> {
        let lacks = |(_, kept): &(&Chunk, &Option<Kept>)| kept.as_ref().is_none_or(|kept| !kept.has_vector);
        self.chunks.iter().zip(&self.kept).filter(lacks).map(|(chunk, _)| chunk)
    }

    fn n_embedded(&self, vectors: &Vectors) -> usize {
        self.wanting().filter(|chunk| vectors.by_hash.contains_key(&chunk.hash)).count()
    }
}

/// Whether what is stored is newer than what came. Without versions the last write wins.
fn is_newer(stored: Option<i64>, came: Option<i64>) -> bool {
    matches!((stored, came), (Some(stored), Some(came)) if stored > came)
}

/// Where the time goes, for `bench remember` and whoever tunes.
fn took(step: &'static str, since: Instant) {
    metrics::histogram!("tributary_remember_seconds", "step" => step).record(since.elapsed().as_secs_f64());
}

fn count(remembered: &[Remembered]) {
    for outcome in remembered {
        let change = match outcome.change {
            Change::Created => "created",
            Change::Updated => "updated",
            Change::Unchanged => "unchanged",
            Change::Superseded => "superseded",
            Change::Deleted => "deleted",
        };
        metrics::counter!("tributary_documents_remembered_total", "change" => change).increment(1);
    }
}
