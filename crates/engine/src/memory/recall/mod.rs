//! Asking memory, for what `memory::remember` wrote. A search goes through these steps:
//!
//! 1. `question`: the question becomes a vector.
//! 2. `store::memory::look`: the postings of its words (`memory.keyword_postings`) and the chunks nearest to its vector, in one round trip of the
//!    caller's own transaction. `lists` has the long ones. `keyword` scores every chunk that has one of the words.
//! 3. `store::memory::complete`: the best chunks of either side become candidates, with both scores. Another way to find candidates only has to
//!    name more chunks.
//! 4. `fusion`: the two scores become one order of documents.
//! 5. `store::memory::found`: the best are read with their texts, twenty at least. The question's phrases are looked for in them; a reranker
//!    belongs here too. The first `k` are kept.
//! 6. Each becomes a `Hit`, with a snippet and why it matched.

mod fusion;
mod keyword;
mod lists;
mod question;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::text::{self, Part, Phrases, has_nul};
use domain::{Caller, DocumentType};
use store::Tx;
use store::memory::{self, Candidate, Filters, Found, How, Looked, Mode, QueryVector};
use uuid::Uuid;

use self::fusion::{Fused, PHRASE, Scored};
use self::keyword::Scores;
pub use self::lists::Lists;
use crate::{ActError, Env};

const SNIPPET_CHARS: usize = 260;
/// The most documents that one search returns.
const MOST_HITS: usize = 100;
/// Longer than a question, shorter than a document.
const MOST_CHARS: usize = 2_000;
/// The number of candidates by keyword, and of those by vector. With 100 by vector, a twentieth of the ten nearest documents is missed among
/// 100,000 chunks: several chunks are of one document.
const BY_KEYWORD: usize = 100;
const NEAREST: usize = 200;
/// At least so many documents are read before the last ones are chosen.
const READ: usize = 20;

#[derive(Clone, Debug, Default)]
pub struct Query {
    pub text: String,
    pub filters: Filters,
    /// The largest number of documents.
    pub k: usize,
    pub mode: Mode,
}

impl Query {
    fn check(&self) -> Result<(), ActError> {
        if self.text.trim().is_empty() {
            return Err(ActError::invalid("say what to look for"));
        }
        if self.text.chars().count() > MOST_CHARS {
            return Err(ActError::invalid("what to look for has more than 2,000 characters"));
        }
        let kind = self.filters.r#type.as_deref().unwrap_or_default();
        if has_nul(&self.text) || has_nul(kind) || kind.len() > 400 {
            return Err(ActError::invalid("what to look for, or the type, is no text that could be stored"));
        }
        if !(1..=MOST_HITS).contains(&self.k) {
            return Err(ActError::invalid("a search returns 1 to 100 documents"));
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub struct SearchAnswer {
    pub hits: Vec<Hit>,
    /// The way in which vectors were searched for these hits.
    pub how: How,
    /// The reason why the answer may be incomplete, if it may be.
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
    /// The reason why it matched, in words.
    pub why: String,
    pub snippet: Vec<Part>,
}

/// Finds the best documents of the caller's tenant. An embedder that is away makes the answer poorer, not absent.
pub async fn search(env: &Env, caller: &Caller, query: &Query) -> Result<SearchAnswer, ActError> {
    query.check()?;
    let question = match query.mode != Mode::Keyword {
        true => Some(question::embed(env, caller.tenant_id, &query.text).await?),
        false => None,
    };
    let text = (query.mode != Mode::Vector).then_some(query.text.as_str());
    let vector = question.as_ref().and_then(|question| {
        let vector = question.vector.as_ref().ok()?;
        Some(QueryVector { model: &question.embedder.model().name, vector })
    });
    let share = match (&question, query.mode) {
        (Some(question), Mode::Hybrid) => question.embedder.weight(),
        (_, Mode::Vector) => 1.0,
        _ => 0.0,
    };

    let asked = memory::Question { text, vector, filters: &query.filters };
    let (looked, mut best, found) = env
        .db
        .read(caller, async |tx| {
            let mut looked = memory::look(tx, asked, lists::LONG, NEAREST).await?;
            if !env.lists.add_to(tx, &mut looked).await? {
                looked = memory::look(tx, asked, usize::MAX, NEAREST).await?; // everything in one statement
            }
            let scores = Scores::of(&looked);
            let candidates = candidates(tx, asked, &looked, &scores).await?;
            let scored: Vec<Scored> = candidates
                .into_iter()
                .map(|candidate| Scored { candidate, by_keyword: f64::from(scores.get(candidate.n)) })
                .collect();
            let mut best = fusion::fuse(&scored, share);
            best.truncate(query.k.max(READ));
            let ids: Vec<(Uuid, Uuid)> = best.iter().map(|fused| (fused.document_id, fused.chunk_id)).collect();
            let found = memory::found(tx, &ids).await?;
            Ok((looked, best, found))
        })
        .await?;
    let mut found: HashMap<Uuid, Found> = found.into_iter().map(|found| (found.document_id, found)).collect();
    if let Some(text) = text {
        let phrases = Phrases::of(text);
        for fused in &mut best {
            let found = found.get(&fused.document_id);
            fused.score += PHRASE * found.map_or(0.0, |found| phrases.share_in(found.title.as_deref(), &found.text));
        }
        fusion::sort(&mut best);
    }
    let hits =
        best.into_iter().filter_map(|fused| Some(Hit::new(fused, found.remove(&fused.document_id)?, &looked.lexemes)));
    let hits: Vec<Hit> = hits.take(query.k).collect();
    let how = if hits.is_empty() { How::Keyword } else { looked.how };
    let note = question.and_then(|question| question.note(how, hits.is_empty()));
    Ok(SearchAnswer { hits, how, note })
}

/// The best chunks by keyword that match the filters, and the nearest by vector.
async fn candidates(
    tx: &mut Tx,
    asked: memory::Question<'_>,
    looked: &Looked,
    scores: &Scores,
) -> store::Result<Vec<Candidate>> {
    let is_broad = looked.allowed.is_none() && !asked.filters.is_empty();
    // Some entries are of chunks that are gone. A filter that leaves many chunks is applied to those with the best scores, in growing numbers.
    let tries = if is_broad { [10 * BY_KEYWORD, usize::MAX] } else { [BY_KEYWORD * 5 / 4, 10 * BY_KEYWORD] };
    for most in tries {
        let numbers = scores.best(most, looked.allowed.as_deref());
        let completed = memory::complete(tx, asked, looked, &numbers, BY_KEYWORD).await?;
        let n_found = completed.iter().filter(|candidate| scores.get(candidate.n) > 0.0).count();
        if numbers.len() < most || n_found >= BY_KEYWORD || most == tries[1] {
            return Ok(completed);
        }
    }
    Ok(Vec::new())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_looked_for_is() {
        let query = |text: &str, k: usize, kind: Option<&str>| Query {
            text: text.to_owned(),
            k,
            filters: Filters { r#type: kind.map(str::to_owned), ..Filters::default() },
            mode: Mode::Hybrid,
        };
        let (longest, too_long) = ("é".repeat(2_000), "a".repeat(2_001));
        for good in [query("late delivery", 10, None), query(&longest, 1, Some("note")), query("x", 100, None)] {
            assert!(good.check().is_ok(), "{good:?}");
        }
        let odd = [("", 10, None), (" \n", 10, None), ("a\0b", 10, None), ("x", 10, Some("a\0")), ("x", 0, None)];
        for (text, k, kind) in odd.into_iter().chain([("x", 101, None), (too_long.as_str(), 10, None)]) {
            assert!(query(text, k, kind).check().is_err(), "{text:?}, {k}, {kind:?}");
        }
    }
}
