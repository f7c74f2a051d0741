//! Asking memory: the query is embedded, and one statement in the caller's own transaction finds, ranks and fuses.

mod question;

use chrono::{DateTime, Utc};
use domain::text::{self, Part};
use domain::{Caller, DocumentType};
use store::memory::{Filters, Found, Mode};
use uuid::Uuid;

use crate::Env;

const SNIPPET_CHARS: usize = 260;

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
    /// How vectors were searched: `exact`, by `index`, or not at all (`keyword`).
    pub how: String,
    /// Why the answer may be poorer than it could be.
    pub note: Option<String>,
}

/// A document that matched, with the place in it that matched best.
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

/// The best documents of the caller's tenant. An embedder that is away makes the answer poorer, not absent.
pub async fn search(env: &Env, caller: &Caller, query: &Query) -> Result<SearchAnswer, store::Error> {
    let is_embedded = query.mode != Mode::Keyword && !query.text.trim().is_empty();
    let question = match is_embedded {
        true => Some(question::embed(env, caller.tenant_id, &query.text).await?),
        false => None,
    };
    let embedding = question.as_ref().and_then(|question| {
        let vector = question.vector.as_ref().ok()?;
        Some((question.embedder.model().name.as_str(), vector.as_slice()))
    });
    let k = i32::try_from(query.k.clamp(1, 100)).unwrap_or(10);
    let found = env.db.read(caller, async |tx| {
        store::memory::search(tx, &query.text, embedding, &query.filters, k, query.mode).await
    });
    let found = found.await?;
    let how = found.first().map_or_else(|| "keyword".to_owned(), |hit| hit.how.clone());
    let note = match &question {
        Some(question) => match &question.vector {
            Err(fault) => Some(format!("searched by keyword alone: the embedder is away ({})", fault.in_words())),
            Ok(_) if how == "keyword" && !found.is_empty() => {
                let model = &question.embedder.model().name;
                Some(format!("searched by keyword alone: this memory has no vectors of the model {model}"))
            }
            Ok(_) => None,
        },
        None => None,
    };
    Ok(SearchAnswer { hits: found.into_iter().map(Hit::from).collect(), how, note })
}

impl From<Found> for Hit {
    fn from(found: Found) -> Self {
        let why = match (found.keyword_rank, found.vector_rank, found.similarity) {
            (Some(k), Some(v), _) => format!("its words (no. {k}) and its meaning (no. {v})"),
            (Some(k), None, _) => format!("its words (no. {k})"),
            (None, Some(v), Some(similarity)) => format!("its meaning (no. {v}, similarity {similarity:.2})"),
            _ => String::new(),
        };
        Self {
            snippet: text::snippet(&found.text, &found.terms, SNIPPET_CHARS),
            document_id: found.document_id,
            chunk_id: found.chunk_id,
            title: found.title,
            document_type: found.document_type,
            source_id: found.source_id,
            source_name: found.source_name,
            external_id: found.external_id,
            at: found.at,
            score: found.score,
            keyword_rank: found.keyword_rank,
            vector_rank: found.vector_rank,
            similarity: found.similarity,
            why,
        }
    }
}
