//! The two halves of a search in the database: candidates by words and by vector, and what is shown of those that were chosen. Both run in
//! the caller's own transaction.

use chrono::{DateTime, Utc};
use domain::{DocumentType, words};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::HalfVec;
use crate::{Error, Result};

words! {
    /// How candidates are found.
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
    /// How vectors were searched.
    How {
        /// All of them were compared.
        Exact = "exact",
        /// By the tenant's own index.
        Index = "index",
        /// Not at all: candidates are by keyword alone.
        Keyword = "keyword",
    }
}

/// What a search is narrowed to.
#[derive(Clone, Debug, Default, Serialize)]
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
}

/// A document that one side of a search proposes, with the chunk that matches best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    pub document_id: Uuid,
    pub chunk_id: Uuid,
    /// By keyword: the sum over the terms of rarity times `ts_rank`. By vector: the similarity.
    pub score: f64,
}

/// What both sides of a search propose, best first.
#[derive(Clone, Debug)]
pub struct Candidates {
    pub by_keyword: Vec<Candidate>,
    pub by_vector: Vec<Candidate>,
    /// The lexemes that were looked for, some of them stems.
    pub terms: Vec<String>,
    pub how: How,
}

/// The vector of a question, and the name of the model that made it.
#[derive(Clone, Copy, Debug)]
pub struct QueryVector<'a> {
    pub model: &'a str,
    pub vector: &'a [f32],
}

/// Finds candidates in one round trip: by keyword where there is a text, by vector where there is a vector. A vector counts only when
/// its model is the one that the tenant's vectors are of.
pub async fn candidates(
    conn: &mut PgConnection,
    text: Option<&str>,
    vector: Option<QueryVector<'_>>,
    filters: &Filters,
) -> Result<Candidates> {
    #[derive(sqlx::FromRow)]
    struct Row {
        keyword_documents: Vec<Uuid>,
        keyword_chunks: Vec<Uuid>,
        keyword_scores: Vec<f64>,
        terms: Vec<String>,
        vector_documents: Vec<Uuid>,
        vector_chunks: Vec<Uuid>,
        similarities: Vec<f64>,
        how: String,
    }
    let row: Row = sqlx::query_as(include_str!("../sql/candidates.sql"))
        .bind(text)
        .bind(vector.map(|vector| vector.model))
        .bind(vector.map(|vector| HalfVec::new(vector.vector)))
        .bind(serde_json::to_value(filters).unwrap_or_default())
        .fetch_one(conn)
        .await?;
    Ok(Candidates {
        by_keyword: zipped(row.keyword_documents, row.keyword_chunks, row.keyword_scores),
        by_vector: zipped(row.vector_documents, row.vector_chunks, row.similarities),
        terms: row.terms,
        how: row.how.parse().map_err(|what| Error::Refused { what })?,
    })
}

fn zipped(documents: Vec<Uuid>, chunks: Vec<Uuid>, scores: Vec<f64>) -> Vec<Candidate> {
    let candidate = |((document_id, chunk_id), score)| Candidate { document_id, chunk_id, score };
    documents.into_iter().zip(chunks).zip(scores).map(candidate).collect()
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
