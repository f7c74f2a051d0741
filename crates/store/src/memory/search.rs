//! The two halves of a search in the database: candidates by words and by vector, and what is shown of those that were chosen. Both run in
//! the caller's own transaction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use domain::papers::{Decimal, PaperKind};
use domain::{DocumentType, words};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::HalfVec;
use crate::Result;

words! {
    /// The way in which candidates are found.
    #[derive(Default)]
    Mode {
        /// By keyword and by vector, fused.
        #[default]
        Hybrid = "hybrid",
        Keyword = "keyword",
        Vector = "vector",
    }
}

words! {
    /// The way in which vectors were searched.
    How {
        /// All of them were compared.
        Exact = "exact",
        /// By codes.
        Index = "index",
        /// Not at all: candidates are by keyword alone.
        Keyword = "keyword",
    }
}

words! {
    /// The order of hits.
    #[derive(Default)]
    Sort {
        /// The best first.
        #[default]
        Relevance = "relevance",
        /// The newest first, of the documents that match.
        Date = "date",
    }
}

/// The filters of a search.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Filters {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact: Option<i64>,
    /// A client: its own text, its record, and the records that mention it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Uuid>,
    /// A person of the tenant: activities that are theirs, and documents of contacts that are theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Uuid>,
    #[serde(flatten)]
    pub says: PaperFilters,
    /// Only documents that were first stored after that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_after: Option<DateTime<Utc>>,
    /// Only documents that were stored by that time. Later pages of a search have it, so that what arrives meanwhile moves nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_by: Option<DateTime<Utc>>,
}

/// The filters by what the paper of a document's file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PaperFilters {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperKind>,
    /// A part of the supplier's name; capitals do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supplier: Option<String>,
    /// Bounds of its total, which are within.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_min: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_max: Option<Decimal>,
    /// Bounds of the day on which it was issued or begins, which are within.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_since: Option<NaiveDate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_until: Option<NaiveDate>,
}

impl Filters {
    pub fn is_empty(&self) -> bool {
        let Self { source, r#type, since, until, contact, client, person, channel, says, stored_after, stored_by } =
            self;
        let is_about_anybody = contact.is_none() && client.is_none() && person.is_none() && channel.is_none();
        let is_of_any_time = since.is_none() && until.is_none() && stored_after.is_none() && stored_by.is_none();
        source.is_none() && r#type.is_none() && is_about_anybody && is_of_any_time && *says == PaperFilters::default()
    }
}

/// A search's question, as the database takes it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The words; none if only vectors are searched.
    pub text: Option<&'a str>,
    /// The vector; none if only words are searched.
    pub vector: Option<QueryVector<'a>>,
    pub filters: &'a Filters,
}

/// The vector of a question, and the name of the model that made it.
#[derive(Clone, Copy, Debug)]
pub struct QueryVector<'a> {
    pub model: &'a str,
    pub vector: &'a [f32],
}

/// All that the tenant's chunks can be scored with: postings and fresh chunks for the words, codes and fresh vectors for the vector.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Looked {
    /// The lexemes that were looked for, some of them stems.
    pub lexemes: Vec<String>,
    /// For each lexeme, the number of the word that it belongs to.
    pub terms: Vec<i32>,
    /// The number of chunks, more or less.
    total: Option<i64>,
    mean_length: Option<f32>,
    of_lists: Option<Vec<i32>>,
    of_segments: Option<Vec<i64>>,
    from_n: Option<Vec<i64>>,
    /// None: the list is long. `long` has it once it was looked up.
    lists: Option<Vec<Option<Vec<u8>>>>,
    #[sqlx(skip)]
    long: HashMap<usize, Arc<[u8]>>,
    fresh_n: Option<Vec<i64>>,
    fresh_lengths: Option<Vec<i32>>,
    fresh_ranks: Option<Vec<f32>>,
    /// The numbers of the chunks that the filters leave, if they are few.
    pub allowed: Option<Vec<i64>>,
    /// The documents that the filters leave, if they are few.
    documents: Option<Vec<Uuid>>,
    /// The codes that have most of the tenant's vectors.
    pub codes: Vec<i64>,
    /// The nearest of the vectors that no code has, nearest first.
    numbers: Vec<i64>,
    chunk_ids: Vec<Uuid>,
    document_ids: Vec<Uuid>,
    similarities: Vec<f64>,
    #[sqlx(try_from = "String")]
    pub how: How,
    /// The model that the tenant's vectors are of; none before anything was remembered.
    pub model: Option<String>,
}

/// A fresh chunk with a word of the question.
#[derive(Clone, Copy, Debug)]
pub struct FreshChunk<'a> {
    pub n: i64,
    pub length: f32,
    ranks: &'a [f32],
    nth: usize,
    count: usize,
}

impl FreshChunk<'_> {
    /// The `ts_rank` of a lexeme, given by its position in [`Looked::lexemes`].
    pub fn rank(&self, lexeme: usize) -> f32 {
        self.ranks.get(lexeme * self.count + self.nth).copied().unwrap_or_default()
    }
}

impl Looked {
    /// The number of chunks, more or less.
    pub fn total(&self) -> u64 {
        self.total.and_then(|total| u64::try_from(total).ok()).unwrap_or_default()
    }

    /// The documents that the filters leave, if they are few.
    pub fn documents(&self) -> Option<&[Uuid]> {
        self.documents.as_deref()
    }

    /// The nearest of the vectors that no code has, nearest first.
    pub fn exact(&self) -> impl Iterator<Item = Candidate> {
        let chunks = self.numbers.iter().zip(&self.chunk_ids).zip(&self.document_ids).zip(&self.similarities);
        chunks.map(|(((n, chunk_id), document_id), similarity)| Candidate {
            n: *n,
            chunk_id: *chunk_id,
            document_id: *document_id,
            similarity: Some(*similarity),
        })
    }

    pub fn mean_length(&self) -> Option<f32> {
        self.mean_length
    }

    /// The lists of postings: the position of the lexeme, the number that entries count from, and the bytes.
    pub fn lists(&self) -> impl Iterator<Item = (usize, i64, &[u8])> {
        let of_lists = self.of_lists.iter().flatten();
        let lists = of_lists.zip(self.from_n.iter().flatten()).zip(self.lists.iter().flatten()).enumerate();
        lists.map(|(at, ((nth, from_n), list))| {
            let list = list.as_deref().or_else(|| self.long.get(&at).map(|list| &**list)).unwrap_or_default();
            (usize::try_from(nth - 1).unwrap_or_default(), *from_n, list)
        })
    }

    /// The long lists that are still missing: the position of the list, its segment and its lexeme.
    pub fn missing(&self) -> impl Iterator<Item = (usize, i64, &str)> {
        let of_lists = self.of_lists.iter().flatten().zip(self.of_segments.iter().flatten());
        let lists = of_lists.zip(self.lists.iter().flatten()).enumerate();
        lists.filter(|(at, (_, list))| list.is_none() && !self.long.contains_key(at)).filter_map(
            |(at, ((nth, segment), _))| {
                Some((at, *segment, self.lexemes.get(usize::try_from(nth - 1).ok()?)?.as_str()))
            },
        )
    }

    /// Adds a long list, by its position.
    pub fn add(&mut self, at: usize, list: Arc<[u8]>) {
        self.long.insert(at, list);
    }

    pub fn fresh(&self) -> impl Iterator<Item = FreshChunk<'_>> {
        let (numbers, lengths) = (self.fresh_n.as_deref().unwrap_or_default(), self.fresh_lengths.iter().flatten());
        let (ranks, count) = (self.fresh_ranks.as_deref().unwrap_or_default(), numbers.len());
        numbers.iter().zip(lengths).enumerate().map(move |(nth, (n, length))| FreshChunk {
            n: *n,
            length: *length as f32,
            ranks,
            nth,
            count,
        })
    }
}

/// Looks for a question's words and for the chunks near its vector, in one round trip. A vector counts only when its model is the one that the
/// tenant's vectors are of.
/// Lists of more than `most` entries are left out: [`posting_lists`] reads those that the caller does not know yet.
pub async fn look(conn: &mut PgConnection, question: Question<'_>, most: usize, nearest: usize) -> Result<Looked> {
    Ok(sqlx::query_as(include_str!("../sql/look.sql"))
        .bind(question.text)
        .bind(question.vector.map(|vector| vector.model))
        .bind(question.vector.map(|vector| HalfVec::new(vector.vector)))
        .bind(serde_json::to_value(question.filters).unwrap_or_default())
        .bind(i32::try_from(most).unwrap_or(i32::MAX))
        .bind(i32::try_from(nearest).unwrap_or(i32::MAX))
        .fetch_one(conn)
        .await?)
}

/// Reads lists of postings, given by segment and lexeme, in that order. Empty where there is none.
pub async fn posting_lists(conn: &mut PgConnection, wanted: &[(i64, &str)]) -> Result<Vec<Vec<u8>>> {
    let (segments, lexemes): (Vec<i64>, Vec<&str>) = wanted.iter().copied().unzip();
    let lists: Option<Vec<Option<Vec<u8>>>> =
        sqlx::query_scalar("select memory.posting_lists($1, $2)").bind(segments).bind(lexemes).fetch_one(conn).await?;
    Ok(lists.unwrap_or_default().into_iter().map(Option::unwrap_or_default).collect())
}

/// A chunk that one side of a search proposes, with what both sides know of it.
#[derive(Clone, Copy, Debug, PartialEq, sqlx::FromRow)]
pub struct Candidate {
    pub n: i64,
    pub chunk_id: Uuid,
    pub document_id: Uuid,
    /// To the question's vector; none without a vector.
    pub similarity: Option<f64>,
}

/// Completes candidates by keyword, given by their numbers, best first, of which the first `limit` that match the filters are taken. Chunks that are gone
/// are left out.
pub async fn complete(
    conn: &mut PgConnection,
    question: Question<'_>,
    looked: &Looked,
    numbers: &[i64],
    limit: usize,
) -> Result<Vec<Candidate>> {
    let vector = question.vector.filter(|_| looked.how != How::Keyword);
    Ok(sqlx::query_as("select * from memory.complete_candidates($1, $2, $3, $4, $5, $6, $7)")
        .bind(vector.map(|vector| vector.model))
        .bind(vector.map(|vector| HalfVec::new(vector.vector)))
        .bind(numbers)
        .bind(&[] as &[Uuid])
        .bind(serde_json::to_value(question.filters).unwrap_or_default())
        .bind(&looked.documents)
        .bind(i32::try_from(limit).unwrap_or(i32::MAX))
        .fetch_all(conn)
        .await?)
}

/// Returns which of some chunks are there, given by their numbers, and are of documents that match the filters.
pub async fn live<T>(
    conn: &mut PgConnection,
    chunks: &HashMap<i64, T>,
    filters: Option<&Filters>,
) -> Result<HashSet<i64>> {
    if chunks.is_empty() {
        return Ok(HashSet::new());
    }
    let numbers: Vec<i64> = chunks.keys().copied().collect();
    let filters =
        filters.map_or_else(|| serde_json::json!({}), |filters| serde_json::to_value(filters).unwrap_or_default());
    let live: Vec<i64> =
        sqlx::query_scalar("select memory.live_chunks($1, $2)").bind(numbers).bind(filters).fetch_one(conn).await?;
    Ok(live.into_iter().collect())
}

/// A document that was found, with the text of its best chunk.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Found {
    pub document_id: Uuid,
    pub chunk_id: Uuid,
    pub title: Option<String>,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
    pub source_id: Uuid,
    pub source_name: String,
    pub external_id: String,
    pub at: DateTime<Utc>,
    /// The time at which it was first stored here.
    pub stored_at: DateTime<Utc>,
    /// The position of the chunk in the document, from 0.
    pub ordinal: i32,
    /// The page of its file on which it stands, and the page's own name.
    pub page: Option<i32>,
    pub page_label: Option<String>,
    /// The kind of that file.
    pub file_kind: Option<String>,
    pub n_chunks: i32,
    /// Its address at its source, as that tells it.
    pub url: Option<String>,
    pub text: String,
}

/// Reads documents with one chunk each, given as (document, chunk), in that order. Those that are gone meanwhile are left out.
pub async fn found(conn: &mut PgConnection, best: &[(Uuid, Uuid)]) -> Result<Vec<Found>> {
    if best.is_empty() {
        return Ok(Vec::new());
    }
    let (documents, chunks): (Vec<Uuid>, Vec<Uuid>) = best.iter().copied().unzip();
    Ok(sqlx::query_as(include_str!("../sql/found.sql")).bind(documents).bind(chunks).fetch_all(conn).await?)
}

/// A chunk's text and its document's title.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ChunkText {
    pub id: Uuid,
    pub title: Option<String>,
    pub text: String,
}

/// Reads the texts of the caller's chunks.
pub async fn texts(conn: &mut PgConnection, chunks: &[Uuid]) -> Result<Vec<ChunkText>> {
    Ok(sqlx::query_as(
        "select c.id, c.title, c.text from public.document_chunks c
         where c.tenant_id = (select tributary.tenant()) and c.id = any($1)",
    )
    .bind(chunks)
    .fetch_all(conn)
    .await?)
}

/// The properties of a document that results are counted and sorted by.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Traits {
    pub document_id: Uuid,
    pub document_type: String,
    pub source_id: Uuid,
    pub source_name: String,
    /// Whether its source is a channel.
    pub is_of_channel: bool,
    pub at: DateTime<Utc>,
    /// The kind of its paper, and who sent that.
    pub paper: Option<String>,
    pub supplier: Option<String>,
}

/// Reads the traits of the caller's documents.
pub async fn traits(conn: &mut PgConnection, documents: &[Uuid]) -> Result<Vec<Traits>> {
    Ok(sqlx::query_as(include_str!("../sql/traits.sql")).bind(documents).fetch_all(conn).await?)
}

/// The time of the caller's transaction, by the clock that documents are stored with.
pub async fn moment(conn: &mut PgConnection) -> Result<DateTime<Utc>> {
    Ok(sqlx::query_scalar("select now()").fetch_one(conn).await?)
}
