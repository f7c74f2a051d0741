//! The plan of a batch, made before its transaction opens: what changes, into which chunks, and which stored chunks stay.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use domain::text::{self, Chunk};
use domain::{DocumentId, DocumentStatus, Fault, PageText, Record, TenantId};
use store::memory::{Kept, Pointer, Seen, VectorTable, chunks, documents};
use store::spend::Spent;
use uuid::Uuid;

use super::normal::{self, Normal, Winner};
use super::vectors::Vectors;
use super::{Batch, Change, Remembered, took};
use crate::Env;
use crate::memory::embed::TenantEmbedder;

pub(super) struct Plan<'a> {
    pub tenant_id: TenantId,
    /// The table for the batch's vectors.
    pub table: &'a VectorTable,
    /// The table of the model that the memory moves to. New chunks get a vector of it, too.
    pub also: Option<&'a VectorTable>,
    /// The models that the plan was made for.
    pub pointer: Pointer,
    pub steps: Vec<Step<'a>>,
    /// The batch's languages, if the tenant has no memory yet or not in all of them.
    pub new_langs: Option<Vec<&'a str>>,
}

/// The work to do for one document.
pub(super) struct Step<'a> {
    pub normal: &'a Normal,
    /// The position of its record in the batch.
    index: usize,
    /// The newest version that came of the document.
    pub version: Option<i64>,
    pub id: DocumentId,
    /// The stored state of the document when the plan was made.
    pub seen: Option<Seen>,
    pub change: Change,
    pub lang: &'a str,
    pub chunks: Vec<Chunk>,
    /// The page of each of `chunks`, if it is of a file that has pages.
    pub places: Vec<Option<&'a PageText>>,
    /// The stored chunk that equals each of `chunks`, if any.
    pub kept: Vec<Option<Kept>>,
    /// Stored chunks that the document no longer has.
    pub gone: Vec<Uuid>,
}

impl<'a> Plan<'a> {
    /// Reads what is stored of the documents, decides which version of each is written, cuts what changed, and matches its chunks with the
    /// stored ones.
    pub async fn make(env: &'a Env, tenant: &'a TenantEmbedder, records: &'a [Normal]) -> Result<Self, Fault> {
        let (tenant_id, table) = (tenant.tenant_id, &tenant.table);
        let begun = Instant::now();
        let mut conn = env.db.acquire().await?;
        let named: HashMap<(Uuid, &str), &Record> =
            records.iter().map(|normal| (normal.key(), &normal.record)).collect();
        let named: Vec<&Record> = named.into_values().collect();
        let seen = documents::look(&mut conn, tenant_id, &named).await?;
        let mut seen: HashMap<(Uuid, String), Seen> =
            seen.into_iter().map(|seen| ((seen.source_id, seen.external_id.clone()), seen)).collect();
        let winners = normal::winners(records, |normal| {
            let key = (normal.record.source_id.0, normal.record.external_id.clone());
            seen.get(&key).and_then(|seen| seen.source_version)
        });
        took("look", begun);

        let begun = Instant::now();
        let mut steps: Vec<Step> = winners
            .iter()
            .map(|winner| {
                let normal = &records[winner.index];
                let seen = seen.remove(&(normal.record.source_id.0, normal.record.external_id.clone()));
                let lang = tenant.memory.lang.as_deref();
                let lang = lang.or_else(|| text::detect_lang(&normal.text)).unwrap_or(&env.config.text_lang);
                Step::new(winner, normal, seen, |model| tenant.is_label(model), lang)
            })
            .collect();
        took("cut", begun);

        let begun = Instant::now();
        let rewritten: Vec<Uuid> = steps.iter().filter(|step| step.is_rewritten()).map(|step| step.id.0).collect();
        let mut stored: HashMap<Uuid, Vec<Kept>> = HashMap::new();
        if !rewritten.is_empty() {
            for kept in chunks::of_documents(&mut conn, tenant_id, table, &rewritten).await? {
                stored.entry(kept.document_id).or_default().push(kept);
            }
        }
        for step in &mut steps {
            step.match_chunks(stored.remove(&step.id.0).unwrap_or_default());
        }
        took("compare", begun);

        let langs: HashSet<&str> = steps.iter().map(|step| step.lang).collect();
        let new_langs = tenant.memory.is_new_to(&langs).then(|| langs.into_iter().collect());
        let also = tenant.also.as_ref().map(|(_, table)| table);
        Ok(Self { tenant_id, table, also, pointer: tenant.memory.pointer(), steps, new_langs })
    }

    /// The chunks of all documents that need a vector.
    pub fn chunks_without_vector(&self) -> impl Iterator<Item = &Chunk> {
        self.steps.iter().flat_map(Step::chunks_without_vector)
    }

    /// The chunks of all documents that are not stored yet.
    pub fn new_chunks(&self) -> impl Iterator<Item = &Chunk> {
        let pairs = self.steps.iter().flat_map(|step| step.chunks.iter().zip(&step.kept));
        pairs.filter(|(_, kept)| kept.is_none()).map(|(chunk, _)| chunk)
    }

    /// The cost of the batch's vectors, in all rounds.
    pub fn spent(&self, vectors: &Vectors<'_>) -> Spent {
        let n_documents = self.steps.iter().filter(|step| step.n_embedded(vectors) > 0).count();
        Spent { documents: i64::try_from(n_documents).unwrap_or(i64::MAX), ..vectors.spent() }
    }

    /// The outcome once the plan is written. A record that lost to another version in the batch is superseded.
    pub fn outcome(&self, records: &[Normal], vectors: &Vectors<'_>) -> Batch {
        let by_key: HashMap<(Uuid, &str), &Step> = self.steps.iter().map(|step| (step.normal.key(), step)).collect();
        let mut outcomes = Vec::with_capacity(records.len());
        for (index, record) in records.iter().enumerate() {
            let Some(step) = by_key.get(&record.key()) else { continue };
            let is_winner = step.index == index;
            outcomes.push(Remembered {
                id: step.id,
                change: if is_winner { step.change } else { Change::Superseded },
                n_chunks: step.chunks.len(),
                n_embedded: if is_winner { step.n_embedded(vectors) } else { 0 },
                is_pending: step.is_pending(vectors),
                status: step.status(),
            });
        }
        Batch { records: outcomes, spent: self.spent(vectors) }
    }
}

impl<'a> Step<'a> {
    fn new(
        winner: &Winner,
        normal: &'a Normal,
        seen: Option<Seen>,
        is_label: impl Fn(&str) -> bool,
        lang: &'a str,
    ) -> Self {
        let change = change(seen.as_ref(), normal, is_label);
        let is_cut = matches!(change, Change::Created | Change::Updated);
        let (chunks, places) = if is_cut { normal.chunks() } else { (Vec::new(), Vec::new()) };
        Self {
            normal,
            index: winner.index,
            version: winner.version,
            id: seen.as_ref().map_or_else(DocumentId::new, |seen| DocumentId(seen.id)),
            seen,
            change,
            lang,
            chunks,
            places,
            kept: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Whether a stored document gets another text, or none.
    pub fn is_rewritten(&self) -> bool {
        self.seen.is_some() && matches!(self.change, Change::Updated | Change::Deleted)
    }

    /// Finds each chunk among the stored ones; the rest of those is gone.
    fn match_chunks(&mut self, stored: Vec<Kept>) {
        let mut stored: HashMap<(Vec<u8>, i32), Kept> =
            stored.into_iter().map(|kept| ((kept.hash.clone(), kept.occurrence), kept)).collect();
        self.kept = self.chunks.iter().map(|chunk| stored.remove(&(chunk.hash.to_vec(), chunk.occurrence))).collect();
        self.gone = stored.into_values().map(|kept| kept.id).collect();
    }

    fn chunks_without_vector(&self) -> impl Iterator<Item = &Chunk> {
        let lacks = |(_, kept): &(&Chunk, &Option<Kept>)| kept.as_ref().is_none_or(|kept| !kept.has_vector);
        self.chunks.iter().zip(&self.kept).filter(lacks).map(|(chunk, _)| chunk)
    }

    /// How far its file is read once the plan is written.
    fn status(&self) -> DocumentStatus {
        let is_awaited = self.normal.record.status == DocumentStatus::Pending;
        let stored = self.seen.as_ref().map(|seen| seen.status);
        stored.filter(|_| is_awaited && self.change == Change::Unchanged).unwrap_or(self.normal.record.status)
    }

    fn n_embedded(&self, vectors: &Vectors<'_>) -> usize {
        self.chunks_without_vector().filter(|chunk| vectors.get(chunk).is_some()).count()
    }

    /// Whether some of its vectors could not be made.
    pub fn is_pending(&self, vectors: &Vectors<'_>) -> bool {
        self.chunks_without_vector().any(|chunk| vectors.get(chunk).is_none())
    }
}

/// Decides what a record means, given what is stored of its document, and which models its vectors may be of.
fn change(seen: Option<&Seen>, normal: &Normal, is_label: impl Fn(&str) -> bool) -> Change {
    let is_deleted = normal.record.is_deleted;
    match seen {
        Some(seen) if seen.is_removed => Change::KeptOut,
        Some(seen) if normal::is_newer(seen.source_version, normal.record.source_version) => Change::Superseded,
        Some(seen) if is_deleted && seen.is_deleted => Change::Unchanged,
        _ if is_deleted => Change::Deleted,
        None => Change::Created,
        // The bytes of a file whose text comes later: whoever reads it may have done so by now.
        Some(seen) if is_known_file(seen, &normal.record) => Change::Unchanged,
        Some(seen) if seen.is_deleted || seen.content_sha256 != normal.sha256 => Change::Updated,
        // The same text, but its vectors are missing or of another model.
        Some(seen) if seen.n_chunks > 0 && !seen.embedding_model.as_deref().is_some_and(is_label) => Change::Updated,
        Some(_) => Change::Unchanged,
    }
}

/// Whether a record says nothing but that a stored file is there.
fn is_known_file(seen: &Seen, record: &Record) -> bool {
    let is_awaited = record.status == DocumentStatus::Pending && record.blob_key.is_some();
    is_awaited && !seen.is_deleted && seen.blob_key == record.blob_key
}

#[cfg(test)]
mod tests {
    use domain::{DocumentType, SourceId};

    use super::*;

    fn record(text: &str, version: i64, is_deleted: bool) -> Normal {
        Normal::of(Record {
            source_version: Some(version),
            is_deleted,
            ..Record::new(SourceId(Uuid::nil()), "a", DocumentType::Note, text)
        })
    }

    fn stored(text: &str, version: i64, is_deleted: bool, model: Option<&str>) -> Seen {
        let normal = record(text, version, is_deleted);
        Seen {
            id: Uuid::nil(),
            source_id: Uuid::nil(),
            external_id: "a".into(),
            content_sha256: normal.sha256.to_vec(),
            embedding_model: model.map(Into::into),
            source_version: Some(version),
            revision: 1,
            n_chunks: i32::from(!is_deleted),
            is_deleted,
            is_removed: false,
            blob_key: normal.record.blob_key,
            status: DocumentStatus::Completed,
        }
    }

    fn awaited(mut record: Normal, blob_key: &str) -> Normal {
        record.record.status = DocumentStatus::Pending;
        record.record.blob_key = Some(blob_key.into());
        record
    }

    fn read(blob_key: &str) -> Seen {
        Seen { blob_key: Some(blob_key.into()), ..stored("read", 1, false, Some("fast_256")) }
    }

    #[test]
    fn a_record_means_what_it_changes() {
        let current = Some("fast_256");
        for (what, seen, came, expected) in [
            ("new", None, record("one", 1, false), Change::Created),
            ("new and deleted", None, record("", 1, true), Change::Deleted),
            ("same", Some(stored("one", 1, false, current)), record("one", 2, false), Change::Unchanged),
            ("changed", Some(stored("one", 1, false, current)), record("two", 2, false), Change::Updated),
            ("changed, same version", Some(stored("one", 1, false, current)), record("two", 1, false), Change::Updated),
            ("older", Some(stored("two", 2, false, current)), record("one", 1, false), Change::Superseded),
            ("no vectors", Some(stored("one", 1, false, None)), record("one", 1, false), Change::Updated),
            ("another model's", Some(stored("one", 1, false, Some("b_8"))), record("one", 1, false), Change::Updated),
            ("deleted", Some(stored("one", 1, false, current)), record("", 2, true), Change::Deleted),
            ("deleted again", Some(stored("", 2, true, None)), record("", 3, true), Change::Unchanged),
            ("late for a deletion", Some(stored("", 2, true, None)), record("one", 1, false), Change::Superseded),
            ("back after a deletion", Some(stored("", 2, true, None)), record("one", 3, false), Change::Updated),
            ("a file that was read", Some(read("a")), awaited(record("", 2, false), "a"), Change::Unchanged),
            ("another file", Some(read("a")), awaited(record("", 2, false), "b"), Change::Updated),
            ("deleted by a person", Some(removed(2)), record("one", 3, false), Change::KeptOut),
            ("deleted by a person, and late", Some(removed(2)), record("one", 1, false), Change::KeptOut),
            ("deleted by a person and its source", Some(removed(2)), record("", 3, true), Change::KeptOut),
        ] {
            assert_eq!(change(seen.as_ref(), &came, |model| model == "fast_256"), expected, "{what}");
        }
    }

    fn removed(version: i64) -> Seen {
        Seen { is_removed: true, ..stored("", version, true, None) }
    }

    #[test]
    fn a_chunk_keeps_its_row_by_hash_and_occurrence() {
        let normal = record("One paragraph.", 1, false);
        let seen = stored("Another.", 1, false, None);
        let mut step = Step::new(&Winner { index: 0, version: Some(1) }, &normal, Some(seen), |_| true, "simple");
        let kept = |nth: u128, hash: &[u8], has_vector| Kept {
            id: Uuid::from_u128(nth),
            document_id: Uuid::nil(),
            hash: hash.to_vec(),
            occurrence: 0,
            has_vector,
        };
        let hash = step.chunks[0].hash;
        step.match_chunks(vec![kept(1, &hash, false), kept(2, &[0; 32], true)]);
        assert_eq!(step.kept[0].as_ref().map(|kept| kept.id), Some(Uuid::from_u128(1)));
        assert_eq!(step.gone, [Uuid::from_u128(2)]);
        assert_eq!(step.chunks_without_vector().count(), 1, "it stays, and still needs its vector");
        step.match_chunks(vec![kept(1, &hash, true)]);
        assert_eq!(step.chunks_without_vector().count(), 0);
    }
}
