//! Asking memory: one call of `memory.search`, in the caller's own transaction.

use chrono::{DateTime, Utc};
use domain::DocumentType;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::HalfVec;
use crate::Result;

/// How candidates are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// By keyword and by meaning, fused.
    #[default]
    Hybrid,
    Keyword,
    Vector,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Keyword => "keyword",
            Self::Vector => "vector",
        }
    }
}

impl std::str::FromStr for Mode {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Hybrid, Self::Keyword, Self::Vector]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| format!("unknown mode {text:?}; modes are hybrid, keyword and vector"))
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

/// A document that matched, with its best chunk.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Found {
    pub document_id: Uuid,
    pub chunk_id: Uuid,
    pub score: f64,
    pub keyword_rank: Option<i32>,
    pub vector_rank: Option<i32>,
    pub keyword_score: Option<f64>,
    pub similarity: Option<f64>,
    /// What was looked for, as lexemes, some of them stems.
    pub terms: Vec<String>,
    /// How vectors were searched: `exact`, by `index`, or not at all (`keyword`).
    pub how: String,
    pub title: Option<String>,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
    pub source_id: Uuid,
    pub source_name: String,
    pub external_id: String,
    pub at: DateTime<Utc>,
    pub text: String,
    pub ordinal: i32,
}

/// The best `k` documents for a query. `embedding` counts only when `model` is the one the tenant points to.
pub async fn search(
    conn: &mut PgConnection,
    query: &str,
    embedding: Option<(&str, &[f32])>,
    filters: &Filters,
    k: i32,
    mode: Mode,
) -> Result<Vec<Found>> {
    let filters = serde_json::to_value(filters).unwrap_or_default();
    Ok(sqlx::query_as(include_str!("../sql/search.sql"))
        .bind(query)
        .bind(embedding.map(|(_, vector)| HalfVec::new(vector)))
        .bind(embedding.map(|(model, _)| model))
        .bind(filters)
        .bind(k)
        .bind(mode.as_str())
        .fetch_all(conn)
        .await?)
}
