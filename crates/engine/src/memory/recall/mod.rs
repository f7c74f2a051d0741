//! Asking memory. A search goes through these steps:
//!
//! 1. `question`: the question becomes a vector.
//! 2. `store::memory::candidates`: documents by keyword and documents by vector, in one round trip of the caller's own transaction.
//! 3. `fusion`: the two lists become one order. Another way to find candidates only has to give such a list.
//! 4. `store::memory::found`: the best are read with their texts. A reranker belongs after this step: it gets the question and the first
//!    twenty `Found`, and returns them in another order, of which the first `k` are kept.
//! 5. Each becomes a `Hit`, with a snippet and why it matched.

mod fusion;
mod question;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::text::{self, Part};
use domain::{Caller, DocumentType};
use store::memory::{self, Filters, Found, How, Mode, QueryVector};
use uuid::Uuid;

use self::fusion::Fused;
use crate::Env;

const SNIPPET_CHARS: usize = 260;
const MOST_HITS: usize = 100;

#[derive(Clone, Debug, Default)]
pub struct Query {
    pub text: String,
    pub filters: Filters,
    pub k: usize,
    pub mode: Mode,
}

#[derive(Clone, Debug)]
pub struct SearchAnswer {
    pub hits: Vec<Hit>,
    /// How vectors were searched for these hits.
    pub how: How,
    /// Why the answer may be poorer than it could be.
    pub note: Option<String>,
}

/// A document that matched, with the chunk that matched best.
#[derive(Clone, Debug)]
pub struct Hit {
    pub document_id: Uuid,
    pub chunk_id: Uuid,
    pub title: Option<String>,
    pub document_type: DocumentType,
    pub source_id: Uuid,
    pub source_name: String,
    pub external_id: String,
    pub at: DateTime<Utc>,
    pub score: f64,
    pub keyword_rank: Option<i32>,
    pub vector_rank: Option<i32>,
    pub similarity: Option<f64>,
    /// Why it matched, in words.
    pub why: String,
    pub snippet: Vec<Part>,
}

/// Finds the best documents of the caller's tenant. An embedder that is away makes the answer poorer, not absent.
pub async fn search(env: &Env, caller: &Caller, query: &Query) -> Result<SearchAnswer, store::Error> {
    let is_embedded = query.mode != Mode::Keyword && !query.text.trim().is_empty();
    let question = match is_embedded {
        true => Some(question::embed(env, caller.tenant_id, &query.text).await?),
        false => None,
    };
    let text = (query.mode != Mode::Vector).then_some(query.text.as_str());
    let vector = question.as_ref().and_then(|question| {
        let vector = question.vector.as_ref().ok()?;
        Some(QueryVector { model: &question.embedder.model().name, vector })
    });
    let weight = match (&question, query.mode) {
        (Some(question), Mode::Hybrid) => question.embedder.weight(),
        _ => 1.0,
    };

    let (candidates, best, found) = env
        .db
        .read(caller, async |tx| {
            let candidates = memory::candidates(tx, text, vector, &query.filters).await?;
            let k = query.k.clamp(1, MOST_HITS);
            let best = fusion::fuse(&candidates.by_keyword, &candidates.by_vector, weight, k);
            let ids: Vec<(Uuid, Uuid)> = best.iter().map(|fused| (fused.document_id, fused.chunk_id)).collect();
            let found = memory::found(tx, &ids).await?;
            Ok((candidates, best, found))
        })
        .await?;
    let fused: HashMap<Uuid, Fused> = best.into_iter().map(|fused| (fused.document_id, fused)).collect();
    let hits: Vec<Hit> = found
        .into_iter()
        .filter_map(|found| Some(Hit::new(*fused.get(&found.document_id)?, found, &candidates.terms)))
        .collect();
    let how = if hits.is_empty() { How::Keyword } else { candidates.how };
    let note = question.and_then(|question| question.note(how, hits.is_empty()));
    Ok(SearchAnswer { hits, how, note })
}

impl Hit {
    fn new(fused: Fused, found: Found, terms: &[String]) -> Self {
        Self {
            snippet: text::snippet(&found.text, terms, SNIPPET_CHARS),
            document_id: found.document_id,
            chunk_id: found.chunk_id,
            title: found.title,
            document_type: found.document_type,
            source_id: found.source_id,
            source_name: found.source_name,
            external_id: found.external_id,
            at: found.at,
            score: fused.score,
            keyword_rank: fused.keyword_rank,
            vector_rank: fused.vector_rank,
            similarity: fused.similarity,
            why: why(&fused),
        }
    }
}

fn why(fused: &Fused) -> String {
    match (fused.keyword_rank, fused.vector_rank, fused.similarity) {
        (Some(k), Some(v), _) => format!("its words (no. {k}) and its meaning (no. {v})"),
        (Some(k), None, _) => format!("its words (no. {k})"),
        (None, Some(v), Some(similarity)) => format!("its meaning (no. {v}, similarity {similarity:.2})"),
        _ => String::new(),
    }
}
