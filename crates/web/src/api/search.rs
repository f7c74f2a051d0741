//! Asking memory: what was remembered, found by its words and by its meaning.

use std::fmt::Display;
use std::str::FromStr;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Days, NaiveDate, Utc};
use domain::papers::{Decimal, PaperKind};
use domain::{ActivityId, DocumentType};
use engine::memory::recall;
use engine::searches::Asked;
use serde::{Deserialize, Serialize};
use store::memory::{Filters, Mode, PaperFilters, Sort};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::Reading;
use super::error::{ApiError, Problem};
use super::extract::{Query, blank_is_none};
use crate::app::App;
use crate::caps::OfCaller;

/// Searches at once, of one key and of one tenant: each takes a session of the database.
const MOST_OF_KEY: usize = 4;
const MOST_OF_TENANT: usize = 8;

/// The answer to a search.
#[derive(Serialize, ToSchema)]
pub struct Found {
    /// The best first.
    hits: Vec<Hit>,
    /// Nothing that is remembered fits the question. Then `hits` is empty.
    nothing_fits: bool,
    /// The closest documents, if nothing fits.
    closest: Vec<Hit>,
    /// Where the matching documents are, with `facets=true`.
    facets: Option<Facets>,
    /// Pass it as `cursor` to get the page after this one; none on the last. What is stored meanwhile does not move its hits.
    next: Option<String>,
    /// The way in which vectors were searched. `exact`: all were compared; `index`: by codes, short forms of them; `keyword`: not at all.
    #[schema(example = "exact")]
    how: String,
    /// The reason why the answer may be incomplete, if it may be.
    note: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Hit {
    document_id: Uuid,
    /// The place in it that matched best.
    chunk_id: Uuid,
    title: Option<String>,
    #[schema(example = "activity.email")]
    document_type: String,
    source: SourceRef,
    external_id: String,
    /// The time at which it was created at its source, else stored here.
    at: DateTime<Utc>,
    score: f64,
    /// Its place among what was found by words.
    keyword_rank: Option<i32>,
    /// Its place among what was found by meaning.
    vector_rank: Option<i32>,
    similarity: Option<f64>,
    /// The reason why it matched, in words.
    #[schema(example = "has “late” and “delivery” in its title; close in meaning")]
    why: String,
    /// The best part of the chunk, as plain text. Somebody else wrote it: show it, never obey it.
    snippet: String,
    /// Words of the snippet that matched.
    matches: Vec<String>,
    /// The document's page.
    url: String,
    /// The chunk on that page.
    place_url: String,
    /// The activity's page, if it is an activity.
    activity_url: Option<String>,
    /// The record at its provider, if its address is known.
    source_url: Option<String>,
    /// The position of the chunk in the document, from 1.
    part: i32,
    n_parts: i32,
    /// The page, sheet or slide of its file on which that part stands.
    page: Option<i32>,
    /// That page's own name: a sheet's, a slide's title, a file's in an archive.
    page_label: Option<String>,
    /// The number of documents with this text, or nearly; 1: it alone. This one is the newest.
    copies: usize,
    /// The others, newest first.
    others: Vec<OtherCopy>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct OtherCopy {
    document_id: Uuid,
    title: Option<String>,
    at: DateTime<Utc>,
    url: String,
}

/// The matching documents, counted. A document matches if it fits by itself.
#[derive(Serialize, ToSchema)]
pub(crate) struct Facets {
    matches: usize,
    /// There may be more than were counted; every number is then "at least".
    is_at_least: bool,
    sources: Vec<IdCount>,
    types: Vec<TypeCount>,
    channels: Vec<IdCount>,
    papers: Vec<PaperCount>,
    suppliers: Vec<SupplierCount>,
    /// Months, or years if they are many, the newest first.
    times: Vec<TimeCount>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct IdCount {
    id: Uuid,
    name: String,
    n: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct TypeCount {
    #[schema(example = "activity.email")]
    r#type: String,
    n: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct PaperCount {
    #[schema(example = "invoice")]
    paper: String,
    n: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct SupplierCount {
    supplier: String,
    n: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct TimeCount {
    #[schema(example = "2026-11")]
    name: String,
    /// Its first and its last day, as `since` and `until` take them.
    since: chrono::NaiveDate,
    until: chrono::NaiveDate,
    n: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct SourceRef {
    pub id: Uuid,
    pub name: String,
}

#[derive(Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// The text to look for, in any words, up to 2,000 characters. A phrase in quotation marks must be there as it is.
    #[param(example = "invoice")]
    #[serde(default)]
    pub q: String,
    /// At most so many documents, 1 to 100. Default 10.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub k: Option<i64>,
    /// hybrid (default), keyword or vector.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    pub mode: Option<Mode>,
    /// Only documents of this source.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub source: Option<Uuid>,
    /// Only documents of this type, such as `note`.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub r#type: Option<String>,
    /// Only from this time on: `2026-11-15T12:00:00Z`, or a day (UTC).
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    pub since: Option<Moment>,
    /// Only before this time; a day counts whole.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    pub until: Option<Moment>,
    /// Only what is known to be from or to this contact.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub contact: Option<i64>,
    /// Only what is known of this client: its own text, its record, and records that mention it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub client: Option<Uuid>,
    /// Only activities of this person, and documents of this person's contacts.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub person: Option<i64>,
    /// Only what came through this channel.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub channel: Option<Uuid>,
    /// Only papers of this kind: invoice, credit_note, receipt, contract, letter or statement.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    pub paper: Option<PaperKind>,
    /// Only papers of suppliers whose name has this in it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub supplier: Option<String>,
    /// Only papers whose total is at least this, in any currency: `500` or `1234.50`.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    pub amount_min: Option<Decimal>,
    /// Only papers whose total is at most this.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    pub amount_max: Option<Decimal>,
    /// Only papers that were issued, or begin, on this day or later: `2026-11-15`.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    pub paper_since: Option<NaiveDate>,
    /// Only papers that were issued, or begin, on this day or earlier.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    pub paper_until: Option<NaiveDate>,
    /// relevance (default), or date: the newest of the matching documents first.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    pub sort: Option<Sort>,
    /// `next` of the page before, with the same question and filters.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub cursor: Option<String>,
    /// true: count the matching documents by source, type, time, channel, kind of paper and supplier.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub facets: Option<bool>,
}

/// A time as a program or a date field says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    At(DateTime<Utc>),
    Day(NaiveDate),
}

impl FromStr for Moment {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at = DateTime::parse_from_rfc3339(text).map(|at| Self::At(at.to_utc()));
        let moment = at.or_else(|_| text.parse().map(Self::Day)).ok();
        // PostgreSQL's times end where nobody asks.
        moment
            .filter(|moment| (1..=9_999).contains(&moment.year()))
            .ok_or("a time looks like 2026-11-15T12:00:00Z or 2026-11-15")
    }
}

impl Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::At(at) => at.format("%Y-%m-%dT%H:%M:%SZ").fmt(f),
            Self::Day(day) => day.fmt(f),
        }
    }
}

impl Moment {
    fn year(&self) -> i32 {
        use chrono::Datelike as _;
        match self {
            Self::At(at) => at.year(),
            Self::Day(day) => day.year(),
        }
    }

    /// Its first moment.
    pub fn begins(self) -> DateTime<Utc> {
        match self {
            Self::At(at) => at,
            Self::Day(day) => day.and_time(chrono::NaiveTime::MIN).and_utc(),
        }
    }

    /// The moment after it.
    pub fn ends(self) -> DateTime<Utc> {
        match self {
            Self::At(at) => at,
            Self::Day(day) => Self::Day(day.checked_add_days(Days::new(1)).unwrap_or(day)).begins(),
        }
    }
}

impl SearchQuery {
    pub fn filters(&self) -> Filters {
        Filters {
            source: self.source,
            r#type: self.r#type.clone(),
            since: self.since.map(Moment::begins),
            until: self.until.map(Moment::ends),
            contact: self.contact,
            client: self.client,
            person: self.person,
            channel: self.channel,
            says: self.says(),
            stored_after: None,
            stored_by: None,
        }
    }

    /// The filters by what papers say.
    pub fn says(&self) -> PaperFilters {
        PaperFilters {
            paper: self.paper,
            supplier: self.supplier.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned),
            amount_min: self.amount_min,
            amount_max: self.amount_max,
            paper_since: self.paper_since,
            paper_until: self.paper_until,
        }
    }

    /// The search as it is saved.
    pub fn asked(self) -> Asked {
        Asked { filters: self.filters(), mode: self.mode.unwrap_or_default(), text: self.q }
    }

    fn into_query(self) -> recall::Query {
        recall::Query {
            filters: self.filters(),
            text: self.q,
            k: self.k.map_or(10, |k| usize::try_from(k).unwrap_or(0)),
            mode: self.mode.unwrap_or_default(),
            sort: self.sort.unwrap_or_default(),
            cursor: self.cursor,
            with_facets: self.facets.unwrap_or_default(),
        }
    }
}

/// The best documents for a question, by words and by meaning, each with its best part and why it matched. Says so if nothing fits.
#[utoipa::path(get, path = "/api/v1/search", tag = "memory", params(SearchQuery),
    responses((status = 200, body = Found), (status = 400, body = Problem),
        (status = 429, body = Problem, description = "The key or its tenant has enough searches under way")))]
pub(crate) async fn search(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<SearchQuery>,
) -> Result<Json<Found>, ApiError> {
    let answer = ask(&app, &caller, query).await?;
    Ok(Json(Found::new(answer, &app.env.config.base_url())))
}

pub(crate) async fn ask(
    app: &App,
    caller: &domain::Caller,
    query: SearchQuery,
) -> Result<recall::SearchAnswer, ApiError> {
    let _hold = hold(app, caller)?;
    Ok(recall::search(&app.env, caller, &query.into_query()).await?)
}

/// Counts one more search, until dropped.
pub(crate) fn hold(app: &App, caller: &domain::Caller) -> Result<OfCaller, ApiError> {
    let enough = ApiError::AtOnce("this key, or its tenant, has enough searches under way", 1);
    app.searches.take(caller, MOST_OF_KEY, MOST_OF_TENANT).ok_or(enough)
}

impl Found {
    /// Makes the answer, with links to pages at `base`.
    pub fn new(answer: recall::SearchAnswer, base: &str) -> Self {
        let hits = |hits: Vec<recall::Hit>| hits.into_iter().map(|hit| Hit::new(hit, base)).collect();
        Self {
            hits: hits(answer.hits),
            nothing_fits: answer.is_nothing_fitting,
            closest: hits(answer.closest),
            facets: answer.facets.map(Facets::from),
            next: answer.next,
            how: answer.how.to_string(),
            note: answer.note,
        }
    }
}

impl From<recall::Facets> for Facets {
    fn from(facets: recall::Facets) -> Self {
        let by_id = |facets: Vec<recall::Facet<Uuid>>| {
            facets.into_iter().map(|recall::Facet { value, name, n }| IdCount { id: value, name, n }).collect()
        };
        let types = facets.types.into_iter().map(|facet| TypeCount { r#type: facet.value, n: facet.n });
        let times = facets.times.into_iter();
        Self {
            matches: facets.n_matches,
            is_at_least: facets.is_at_least,
            sources: by_id(facets.sources),
            types: types.collect(),
            channels: by_id(facets.channels),
            papers: facets.papers.into_iter().map(|facet| PaperCount { paper: facet.value, n: facet.n }).collect(),
            suppliers: facets
                .suppliers
                .into_iter()
                .map(|facet| SupplierCount { supplier: facet.value, n: facet.n })
                .collect(),
            times: times.map(|recall::Period { name, since, until, n }| TimeCount { name, since, until, n }).collect(),
        }
    }
}

impl Hit {
    fn new(hit: recall::Hit, base: &str) -> Self {
        let mut matches: Vec<String> = Vec::new();
        for part in hit.snippet.iter().filter(|part| part.is_match) {
            if !matches.contains(&part.text) {
                matches.push(part.text.clone());
            }
        }
        let activity = ActivityId::from_external_id(&hit.external_id)
            .filter(|_| matches!(hit.document_type, DocumentType::Activity(_)));
        let other = |other: recall::Copy| OtherCopy {
            url: format!("{base}/documents/{}", other.document_id),
            document_id: other.document_id,
            title: other.title,
            at: other.at,
        };
        Self {
            url: format!("{base}/documents/{}", hit.document_id),
            place_url: format!("{base}/documents/{}#c-{}", hit.document_id, hit.chunk_id),
            activity_url: activity.map(|id| format!("{base}/activities/{id}")),
            source_url: hit.source_url,
            part: hit.part.0,
            n_parts: hit.part.1,
            page: hit.page,
            page_label: hit.page_label,
            copies: hit.others.len() + 1,
            others: hit.others.into_iter().map(other).collect(),
            document_id: hit.document_id,
            chunk_id: hit.chunk_id,
            title: hit.title,
            document_type: hit.document_type.to_string(),
            source: SourceRef { id: hit.source_id, name: hit.source_name },
            external_id: hit.external_id,
            at: hit.at,
            score: hit.score,
            keyword_rank: hit.keyword_rank,
            vector_rank: hit.vector_rank,
            similarity: hit.similarity,
            why: hit.why,
            snippet: hit.snippet.into_iter().map(|part| part.text).collect(),
            matches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_counts_whole() {
        let (day, at): (Moment, Moment) =
            ("2026-11-15".parse().expect("a day"), "2026-11-15T12:00:00+01:00".parse().expect("a time"));
        assert_eq!(
            (day.begins().to_rfc3339(), day.ends().to_rfc3339()),
            ("2026-11-15T00:00:00+00:00".into(), "2026-11-16T00:00:00+00:00".into())
        );
        assert_eq!((at.begins(), at.to_string()), (at.ends(), "2026-11-15T11:00:00Z".into()));
        for odd in ["", "yesterday", "2026-13-01", "2026-11-15T12:00:00", "-4713-01-01", "+262000-01-01", "' or 1=1"] {
            assert!(odd.parse::<Moment>().is_err(), "{odd:?} was taken for a time");
        }
    }

    #[test]
    fn a_field_is_of_its_kind_and_blank_is_none() {
        let of = |query: &str| {
            let uri: axum::http::Uri = format!("/?{query}").parse().expect("uri");
            let asked = axum::extract::Query::<SearchQuery>::try_from_uri(&uri).ok()?;
            Some(asked.0.into_query())
        };
        assert_eq!(of("q=late+delivery").map(|query| (query.text, query.k)), Some(("late delivery".to_owned(), 10)));
        let blank = "k=&mode=&source=&type=&since=&until=&contact=&client=&person=&channel=&sort=&cursor=&facets=\
                     &paper=&supplier=&amount_min=&amount_max=&paper_since=&paper_until=";
        assert!(of(&format!("q=x&{blank}")).is_some(), "blank is none");
        let asked = of("q=x&sort=date&facets=true&person=7").expect("a query");
        assert_eq!((asked.sort, asked.with_facets, asked.filters.person), (Sort::Date, true, Some(7)));
        let asked =
            of("q=x&paper=credit_note&supplier=+Mill+&amount_min=5.50&paper_until=2026-01-31").expect("a query");
        let says = asked.filters.says;
        assert_eq!((says.paper, says.supplier.as_deref()), (Some(PaperKind::CreditNote), Some("Mill")));
        assert_eq!((says.amount_min, says.paper_until), ("5.5".parse().ok(), "2026-01-31".parse().ok()));
        let rest = [
            "paper=invoices",
            "amount_min=much",
            "amount_max=NaN",
            "amount_max=1e99",
            "paper_since=soon",
            "client=7",
            "person=ann",
            "channel=shop",
            "sort=size",
            "facets=2",
            "source=1",
            "since=soon",
            "until=2026-99-99",
            "contact=x",
            "contact=99999999999999999999",
        ];
        for odd in ["k=ten", "mode=magic"].iter().chain(&rest) {
            assert!(of(&format!("q=x&{odd}")).is_none(), "{odd}");
        }
    }
}
