//! Asking memory, for what `memory::remember` wrote. A search goes through these steps:
//!
//! 1. `question`: the question becomes a vector.
//! 2. `store::memory::look`: the postings of its words (`memory.keyword_postings`) and the names of the codes of vectors (`memory.vector_side`), in one
//!    round trip of the caller's own transaction. `lists` has the long postings, `memory::codes` the codes. `keyword` scores every chunk that has one
//!    of the words.
//! 3. `candidates`: the best chunks by keyword and the nearest by vector, with both scores. Another way to find candidates only has to name more chunks.
//! 4. `fusion` and `ranking`: the two scores become one order of documents. Those that have a quoted phrase, a number or an address of the question
//!    (`domain::text::Exact`) go first. If no candidate has a quoted phrase, further chunks with its words are looked through.
//! 5. `page`: the best are read with their texts, twenty at least. The question's phrases are looked for in them, newer ones get a little more
//!    (`recency`), and texts that are alike become one hit; a reranker belongs here too.
//! 6. `floor` decides whether any of them fits. If not, the answer says so and has the closest apart.
//! 7. Each becomes a `Hit`, with a snippet and why it matched. `facets` counts what matches, and a `cursor` leads to the next page.

mod candidates;
mod coverage;
mod cursor;
mod facets;
mod floor;
mod fusion;
mod keyword;
mod lists;
mod page;
mod question;
mod ranking;
mod recency;
mod why;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use domain::codes::Segment;
use domain::reading::FileKind;
use domain::text::{self, Exact, Part, Phrases, has_nul};
use domain::{Caller, DocumentType};
use store::Tx;
use store::memory::{self, Filters, Found, How, Looked, Mode, QueryVector, Sort, Traits};
use uuid::Uuid;

use self::coverage::Coverage;
use self::cursor::Cursor;
pub use self::facets::{Facet, Facets, Period};
pub use self::floor::Floor;
use self::floor::{Signals, fits};
use self::fusion::{FIRST_CHUNK, PHRASE, Scored};
use self::keyword::Scores;
pub use self::lists::Lists;
use self::page::{Group, Order, Page};
use self::question::Question;
use self::ranking::{Ranked, Ranking};
use self::why::Reasons;
use crate::memory::codes::Codes;
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
/// The number of candidates by keyword for a question with a quoted phrase: most of them will not have it.
const BY_PHRASE: usize = 10 * BY_KEYWORD;

/// Said if few of the best chunks match a filter, and not all were looked at.
const FILTER_CUT: &str =
    "the filters leave few of the best documents, and not all others were looked at: more may match";

/// Said if the words of a quotation are in more chunks than were looked through.
const PHRASE_CUT: &str =
    "the quoted words are in very many texts, and not all were looked through: add a word, or a filter";

#[derive(Clone, Debug, Default)]
pub struct Query {
    pub text: String,
    pub filters: Filters,
    /// The largest number of hits.
    pub k: usize,
    pub mode: Mode,
    pub sort: Sort,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Whether the matching documents are counted by source, type, time, channel, kind of paper and supplier.
    pub with_facets: bool,
}

impl Query {
    pub(crate) fn check(&self) -> Result<(), ActError> {
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
        let says = &self.filters.says;
        let supplier = says.supplier.as_deref().unwrap_or_default();
        if has_nul(supplier) || supplier.chars().count() > 200 {
            return Err(ActError::invalid("a supplier's name has up to 200 characters"));
        }
        let is_odd_day = |day: &NaiveDate| !(1..=9_999).contains(&day.year());
        if [says.paper_since, says.paper_until].iter().flatten().any(is_odd_day) {
            return Err(ActError::invalid("a day is of the years 1 to 9999: 2026-11-15"));
        }
        let is_odd = |at: &DateTime<Utc>| !(1..=9_999).contains(&at.year());
        if [self.filters.since, self.filters.until].iter().flatten().any(is_odd) {
            return Err(ActError::invalid("a time is of the years 1 to 9999: 2026-11-15T12:00:00Z"));
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
    /// Nothing fits the question. Then `hits` is empty, and `closest` has the nearest of what does not fit.
    pub is_nothing_fitting: bool,
    pub closest: Vec<Hit>,
    pub facets: Option<Facets>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
    /// The way in which vectors were searched for these hits.
    pub how: How,
    /// The reason why the answer may be incomplete, if it may be.
    pub note: Option<String>,
}

/// A document that matched, with the chunk that matched best. Of documents with the same text it is the newest.
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
    /// The time at which it was first stored here.
    pub stored_at: DateTime<Utc>,
    /// The position of the chunk in the document, from 1, and the number of its chunks.
    pub part: (i32, i32),
    /// The page of its file on which the chunk stands, and the page's own name.
    pub page: Option<i32>,
    pub page_label: Option<String>,
    pub file_kind: Option<FileKind>,
    /// Its address at its source, if that is known.
    pub source_url: Option<String>,
    /// The other documents with the same text, or nearly, newest first.
    pub others: Vec<Copy>,
    pub score: f64,
    pub keyword_rank: Option<i32>,
    pub vector_rank: Option<i32>,
    pub similarity: Option<f64>,
    /// The reason why it matched, in words.
    pub why: String,
    pub snippet: Vec<Part>,
}

/// Another document with the text of a hit.
#[derive(Clone, Debug)]
pub struct Copy {
    pub document_id: Uuid,
    pub title: Option<String>,
    pub source_name: String,
    pub at: DateTime<Utc>,
}

/// Finds the best documents of the caller's tenant. An embedder that is away makes the answer poorer, not absent.
pub async fn search(env: &Env, caller: &Caller, query: &Query) -> Result<SearchAnswer, ActError> {
    query.check()?;
    let cursor = match &query.cursor {
        Some(text) => Some(Cursor::open(&env.vault, caller.tenant_id, query, text)?),
        None => None,
    };
    let words = (query.mode != Mode::Vector).then(|| Words::of(&query.text, env));
    let mut question = None;
    if query.mode != Mode::Keyword {
        let embedder = question::embedder(env, caller.tenant_id).await?;
        question = Some(question::embed(env, embedder, &query.text).await);
    }
    let mut asker = Asker::new(env, query, words.as_ref(), cursor, question.as_ref());
    let mut answered = asker.read(env, caller, question.as_ref()).await?;
    if let Some(asked) = &question
        && let Some(better) = asked.better(env, caller.tenant_id, &answered.looked).await?
    {
        let again = question::embed(env, better, &query.text).await;
        if again.vector.is_ok() {
            asker = Asker::new(env, query, words.as_ref(), asker.cursor, Some(&again));
            answered = asker.read(env, caller, Some(&again)).await?;
            question = Some(again);
        }
    }

    let next = match &answered.next {
        Some(cursor) => Some(cursor.seal(&env.vault, caller.tenant_id, query)?),
        None => None,
    };
    let looked = &answered.looked;
    let hits = answered.groups.into_iter().map(|group| asker.hit(group, &looked.lexemes)).collect::<Vec<_>>();
    let how = if hits.is_empty() { How::Keyword } else { looked.how };
    let by_vector = question.and_then(|question| question.note(looked, hits.is_empty()));
    let notes: Vec<String> =
        by_vector.into_iter().chain(answered.notes.iter().map(|note| (*note).to_owned())).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    let (hits, closest) = if answered.is_nothing_fitting { (Vec::new(), hits) } else { (hits, Vec::new()) };
    let is_nothing_fitting = answered.is_nothing_fitting;
    Ok(SearchAnswer { hits, is_nothing_fitting, closest, facets: answered.facets, next, how, note })
}

/// The words of a question: what is looked for besides its vector.
struct Words {
    exact: Exact,
    phrases: Phrases,
    /// The question, with other spellings of its telephone numbers.
    keywords: String,
}

impl Words {
    fn of(text: &str, env: &Env) -> Self {
        let exact = Exact::of(text, env.config.phone_region);
        let keywords = exact.spellings().fold(text.to_owned(), |all, spelling| format!("{all} {spelling}"));
        Self { exact, phrases: Phrases::of(text), keywords }
    }
}

/// One search, after its question was read.
struct Asker<'a> {
    query: &'a Query,
    /// None if only vectors are searched.
    words: Option<&'a Words>,
    share: f64,
    floor: Floor,
    cursor: Option<Cursor>,
    now: DateTime<Utc>,
    lists: &'a Lists,
    codes: &'a Codes,
}

/// The answer, as it leaves the database.
struct Answered {
    groups: Vec<Group>,
    is_nothing_fitting: bool,
    facets: Option<Facets>,
    next: Option<Cursor>,
    looked: Looked,
    /// The reasons why it may be incomplete, besides those of its vector.
    notes: Vec<&'static str>,
}

impl<'a> Asker<'a> {
    fn new(
        env: &'a Env,
        query: &'a Query,
        words: Option<&'a Words>,
        cursor: Option<Cursor>,
        question: Option<&Question<'_>>,
    ) -> Self {
        let embedder = question.map_or(env.embedders.configured(), |question| question.embedder);
        let share = match query.mode {
            Mode::Hybrid => embedder.weight(),
            Mode::Vector => 1.0,
            Mode::Keyword => 0.0,
        };
        Self {
            query,
            words,
            share,
            floor: embedder.floor(),
            cursor,
            now: env.clock.now(),
            lists: &env.lists,
            codes: &env.codes,
        }
    }

    /// Reads the answer, in the caller's own transaction.
    async fn read(&self, env: &Env, caller: &Caller, question: Option<&Question<'_>>) -> store::Result<Answered> {
        let vector = question.and_then(|question| {
            let vector = question.vector.as_ref().ok()?;
            Some(QueryVector { model: &question.embedder.model().name, vector })
        });
        let began_at = self.cursor.as_ref().map(|cursor| cursor.began_at);
        let filters = Filters { stored_by: began_at, ..self.query.filters.clone() };
        let text = self.words.map(|words| words.keywords.as_str());
        let asked = memory::Question { text, vector, filters: &filters };
        env.db.read(caller, async |tx| self.ask(tx, asked).await).await
    }

    async fn ask(&self, tx: &mut Tx, asked: memory::Question<'_>) -> store::Result<Answered> {
        let nothing = Exact::default();
        let exact = self.words.map_or(&nothing, |words| &words.exact);
        let limit = if exact.has_phrases() { BY_PHRASE } else { BY_KEYWORD };
        let mut looked = memory::look(tx, asked, lists::LONG, NEAREST).await?;
        let mut segments = self.segments(tx, asked, &looked).await?;
        if !self.lists.add_to(tx, &mut looked).await? || segments.is_none() {
            // Segments were merged meanwhile. Everything of words comes in one statement now, and codes are not merged twice in a moment.
            looked = memory::look(tx, asked, usize::MAX, NEAREST).await?;
            segments = self.segments(tx, asked, &looked).await?;
        }
        let scores = Scores::of(&looked);
        let segments = segments.unwrap_or_default();
        let found = candidates::find(tx, asked, &looked, &scores, &segments, limit).await?;
        let is_cut = found.is_cut;
        let mut notes: Vec<&'static str> = is_cut.then_some(FILTER_CUT).into_iter().collect();
        let mut scored: Vec<Scored> =
            found.candidates.into_iter().map(|candidate| scores.of_candidate(candidate)).collect();
        let mut ranking = ranking::rank(tx, exact, &scored, self.share).await?;
        if exact.has_phrases() && ranking.documents.is_empty() {
            let so_far = (&mut scored, &mut ranking, self.share);
            if !ranking::look_further(tx, asked, exact, &looked, &scores, so_far).await? {
                notes.push(PHRASE_CUT);
            }
        }
        let Ranking { documents: ranked, others } = ranking;
        let (coverage, floor) = (Coverage::of(&looked), self.floor.among(looked.total()));
        let is_fitting = |ranked: &Ranked| fits(self.signals(ranked, &coverage), &floor);

        let is_by_date = self.query.sort == Sort::Date;
        let mut traits: HashMap<Uuid, Traits> = HashMap::new();
        let mut facets = None;
        if self.query.with_facets || is_by_date {
            let matching: Vec<Uuid> =
                ranked.iter().filter(|ranked| is_fitting(ranked)).map(|ranked| ranked.fused.document_id).collect();
            let read = memory::traits(tx, &matching).await?;
            if self.query.with_facets {
                let n_by_keyword = scored.iter().filter(|chunk| chunk.by_keyword > 0.0).count();
                let is_at_least = is_cut || n_by_keyword >= limit || matching.len() >= BY_KEYWORD;
                facets = Some(facets::count(&read.iter().collect::<Vec<_>>(), is_at_least));
            }
            traits = read.into_iter().map(|traits| (traits.document_id, traits)).collect();
        }

        // A later page has only what fits; the first one is filled up with what is near.
        let is_shown =
            |ranked: &Ranked| self.cursor.as_ref().is_some_and(|cursor| cursor.has_shown(ranked.fused.document_id));
        let mut listed: Vec<Ranked> = match (&self.cursor, is_by_date) {
            (None, false) => ranked.clone(),
            _ => ranked.iter().filter(|ranked| is_fitting(ranked) && !is_shown(ranked)).cloned().collect(),
        };
        if is_by_date {
            let at = |ranked: &Ranked| traits.get(&ranked.fused.document_id).map(|traits| traits.at);
            listed.sort_by(|a, b| at(b).cmp(&at(a)).then(a.fused.document_id.cmp(&b.fused.document_id)));
        }
        let part = |found: &Found| self.part(found);
        let order = if is_by_date { Order::Given } else { Order::Scored(&part) };
        // Read again, so that their copies are known: a page reads only as many documents as it needs.
        let earlier: Vec<Ranked> = ranked.iter().filter(|ranked| is_shown(ranked)).cloned().collect();
        let earlier = page::read(tx, &earlier, earlier.len(), &Order::Given, &[]).await?.groups;
        let Page { mut groups, copies } = page::read(tx, &listed, self.query.k, &order, &earlier).await?;
        let is_nothing_fitting = self.cursor.is_none() && !groups.iter().any(|group| is_fitting(&group.ranked));
        if is_nothing_fitting {
            let closest = if ranked.is_empty() { others } else { ranked };
            groups = page::read(tx, &closest, self.query.k, &Order::Scored(&part), &[]).await?.groups;
            groups.truncate(self.query.k);
            facets = facets.map(|_| Facets::default());
            return Ok(Answered { groups, is_nothing_fitting, facets, next: None, looked, notes });
        }
        groups.truncate(self.query.k);
        let shown: HashSet<Uuid> = groups.iter().flat_map(Group::document_ids).chain(copies).collect();
        let is_left =
            |ranked: &Ranked| !shown.contains(&ranked.fused.document_id) && !is_shown(ranked) && is_fitting(ranked);
        let mut next = None;
        if ranked.iter().any(is_left) {
            let mut cursor = match &self.cursor {
                Some(cursor) => cursor.clone(),
                None => Cursor::new(memory::moment(tx).await?),
            };
            shown.into_iter().for_each(|id| cursor.add(id));
            next = Some(cursor);
        }
        Ok(Answered { groups, is_nothing_fitting, facets, next, looked, notes })
    }

    /// The codes that the question needs. None: some were merged into others meanwhile.
    async fn segments(
        &self,
        tx: &mut Tx,
        asked: memory::Question<'_>,
        looked: &Looked,
    ) -> store::Result<Option<Vec<Arc<Segment>>>> {
        match asked.vector.filter(|_| !looked.codes.is_empty()) {
            Some(asked) => self.codes.get(tx, asked.model, &looked.codes).await,
            None => Ok(Some(Vec::new())),
        }
    }

    fn signals(&self, ranked: &Ranked, coverage: &Coverage<'_>) -> Signals {
        Signals {
            similarity: ranked.fused.similarity,
            words: self.words.and_then(|_| coverage.share(ranked.n)),
            is_exact: !ranked.exact.is_empty(),
        }
    }

    /// The part of the score that depends on the text and on the time. By vector alone nothing but the similarity counts.
    fn part(&self, found: &Found) -> f64 {
        self.words.map_or(0.0, |words| {
            let phrases = PHRASE * words.phrases.share_in(found.title.as_deref(), &found.text);
            let first = if found.ordinal == 0 { FIRST_CHUNK } else { 0.0 };
            phrases + first + recency::part(found.at, self.now)
        })
    }

    fn hit(&self, group: Group, lexemes: &[String]) -> Hit {
        let Group { ranked, newest: found, others, .. } = group;
        let exact: Vec<&str> = ranked.exact.iter().map(String::as_str).collect();
        let reasons = Reasons {
            exact: &exact,
            title: found.title.as_deref(),
            text: &found.text,
            lexemes,
            similarity: ranked.fused.similarity,
            floor: &self.floor,
        };
        let other = |found: Found| Copy {
            document_id: found.document_id,
            title: found.title,
            source_name: found.source_name,
            at: found.at,
        };
        Hit {
            why: why::why(&reasons),
            snippet: text::snippet(&found.text, lexemes, SNIPPET_CHARS),
            document_id: found.document_id,
            chunk_id: found.chunk_id,
            title: found.title,
            document_type: found.document_type,
            source_id: found.source_id,
            source_name: found.source_name,
            external_id: found.external_id,
            at: found.at,
            stored_at: found.stored_at,
            part: (found.ordinal + 1, found.n_chunks),
            page: found.page,
            page_label: found.page_label,
            file_kind: found.file_kind.and_then(|kind| kind.parse().ok()),
            source_url: found.url.filter(|url| is_web_address(url)),
            others: others.into_iter().map(other).collect(),
            score: ranked.fused.score,
            keyword_rank: ranked.fused.keyword_rank,
            vector_rank: ranked.fused.vector_rank,
            similarity: ranked.fused.similarity,
        }
    }
}

/// Whether a link may lead there. The address comes from outside, so a script or a file is none.
fn is_web_address(url: &str) -> bool {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    is_web && url.len() <= 2_000 && !url.contains(|c: char| c.is_control() || c.is_whitespace())
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
            ..Query::default()
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

    #[test]
    fn a_link_leads_to_a_web_page_and_nowhere_else() {
        for (url, expected) in [
            ("https://docs.example/d/1", true),
            ("http://10.0.0.7/x?y#z", true),
            ("javascript:alert(1)", false),
            (" https://docs.example", false),
            ("https://a b", false),
            ("file:///etc/passwd", false),
            ("//docs.example", false),
            ("", false),
        ] {
            assert_eq!(is_web_address(url), expected, "{url:?}");
        }
    }
}
