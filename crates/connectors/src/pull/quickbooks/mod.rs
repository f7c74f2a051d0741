//! Reads QuickBooks' customers and invoices by its REST API. A full pass queries each entity in the order of ids. A delta asks for changes,
//! which alone tell of deletions, and reach back a month and over a thousand records at most.

mod clients;
mod complaint;
mod guide;
mod map;
mod spec;
mod tools;
mod wire;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::map::{OBJECTS, Object};
pub use self::spec::SPEC;
use self::wire::{Changed, Company, Queried, told_at};
use super::http::{Api, ApiAnswer, Refused};
use super::records::{Records, sorted};
use super::trail::{Trail, follow};
use super::{Account, Connector, Found, Identity, Limit, OVERLAP, Page, PullError, last, more, read_place, record};

const LIMITS: [&Limit; 2] = [&spec::SECOND, &spec::MINUTE];
/// The oldest version whose answers have the shape that we know.
const MINOR_VERSION: (&str, &str) = ("minorversion", "75");
const PAGE: usize = 1_000;
const FIND: usize = 100;
/// The number of times that a pass over one entity may go back because records moved meanwhile.
const BACK_MAX: usize = 20;
/// An answer with so many changes may have left some out.
const CHANGES_MAX: usize = 1_000;
/// QuickBooks keeps changes for 30 days. One day less, for the time that passes while we ask.
const LOOK_BACK: TimeDelta = TimeDelta::days(29);

pub(super) struct Quickbooks {
    api: Api,
}

/// The position of a full pass. Rows are counted, and all rows after a deleted record move up. So a page begins with the last record of the
/// page before; where that is missing, the pass goes back. The trail consists of last ids, which reveal an answer that never moves on.
#[derive(Clone, Serialize, Deserialize)]
struct QueryPlace {
    stream: usize,
    start: usize,
    size: usize,
    /// The id that the page must begin with.
    known: Option<String>,
    trail: Option<Trail>,
    /// Whether we have just gone back, perhaps not far enough.
    is_back: bool,
    n_back: usize,
}

impl QueryPlace {
    fn of(stream: usize) -> Self {
        Self { stream, start: 1, size: PAGE, known: None, trail: None, is_back: false, n_back: 0 }
    }

    fn statement(&self, object: &Object) -> String {
        let (entity, inactive) = (object.entity, with_inactive(object, " where "));
        format!(
            "select * from {entity}{inactive} orderby Id startposition {} maxresults {}",
            self.start,
            self.size.max(self.least())
        )
    }

    /// The smallest page: one new record, and the known one.
    fn least(&self) -> usize {
        1 + usize::from(self.known.is_some())
    }

    /// A smaller page, after an answer that was too large; none when it had one record.
    fn smaller(&self) -> Option<Self> {
        let least = self.least();
        if self.size > least {
            return Some(Self { size: (self.size / 2).max(least), ..self.clone() });
        }
        self.known.as_ref().map(|_| Self { start: self.start + 1, size: 1, known: None, ..self.clone() })
    }

    /// Goes back, because records before this one are gone: far enough for all that can have moved up meanwhile.
    fn back(self) -> Result<Self, PullError> {
        if self.n_back == BACK_MAX {
            return Err(PullError::CursorLost("QuickBooks' list changes faster than it can be read"));
        }
        let start = self.start.saturating_sub(PAGE).max(1);
        Ok(Self { start, known: None, trail: None, is_back: true, n_back: self.n_back + 1, ..self })
    }
}

#[derive(Serialize, Deserialize)]
struct Cursor {
    changed_since: DateTime<Utc>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "Id")]
    id: Value,
}

impl Quickbooks {
    pub fn new(api: Api) -> Self {
        Self { api }
    }

    /// A path below the company.
    fn path(&self, account: &Account<'_>, rest: &str) -> Result<String, PullError> {
        let realm = account.account;
        if realm.is_empty() || !realm.bytes().all(|b| b.is_ascii_digit()) {
            return Err(PullError::Forbidden { who: self.api.who(), code: "no_realm".into() });
        }
        Ok(format!("/v3/company/{realm}/{rest}"))
    }

    async fn query(&self, account: &Account<'_>, statement: &str) -> Result<Queried, Refused> {
        let query = [MINOR_VERSION, ("query", statement)];
        let answer: ApiAnswer<Queried> = self.api.get(account, &LIMITS, &self.path(account, "query")?, &query).await?;
        Ok(answer.body)
    }

    async fn full_page(&self, account: &Account<'_>, place: Option<&Value>) -> Result<Page, PullError> {
        let mut place: QueryPlace = place.map(read_place).transpose()?.unwrap_or_else(|| QueryPlace::of(0));
        let Some(object) = OBJECTS.get(place.stream) else {
            return Err(PullError::CursorLost("our place in this account cannot be read"));
        };
        let queried = loop {
            match (self.query(account, &place.statement(object)).await, place.smaller()) {
                (Err(Refused::TooLarge { .. }), Some(smaller)) => place = smaller,
                (Err(Refused::TooLarge { most, .. }), None) => {
                    let failed = record::failed(object.name, None, too_large(most), json!({ "position": place.start }));
                    let next = QueryPlace { start: place.start + 1, size: PAGE, is_back: false, ..place };
                    return Ok(more(Vec::new(), vec![failed], json!(next)));
                }
                (answer, _) => break answer?,
            }
        };
        let records = queried.response.of(object);
        let id_of = |index: usize| records.head(index).and_then(|head: Head| record::plain_id(&head.id));
        let (n_rows, n_known) = (records.len(), usize::from(place.known.is_some()));
        let is_in_place = n_rows > 0 && (place.known.is_none() || place.known == id_of(0));
        // A page without anything new is the end. A short page is not: it may have been cut short.
        let is_behind_all = n_rows == 0 && (place.start == 1 || (place.known.is_none() && !place.is_back));
        if is_behind_all || (is_in_place && n_rows == n_known) {
            if place.stream + 1 == OBJECTS.len() {
                return Ok(last(Vec::new(), Vec::new(), Value::Null));
            }
            return Ok(more(Vec::new(), Vec::new(), json!(QueryPlace::of(place.stream + 1))));
        }
        if !is_in_place {
            return Ok(more(Vec::new(), Vec::new(), json!(place.back()?)));
        }
        let known = id_of(n_rows - 1);
        let trail = match &known {
            Some(id) => Some(follow(self.api.who(), place.trail.clone(), id.clone())?),
            None => place.trail.clone(),
        };
        let (items, failed) = mapped(object, records, n_known);
        let start = place.start + n_rows - usize::from(known.is_some());
        Ok(more(items, failed, json!(QueryPlace { start, known, trail, is_back: false, ..place })))
    }

    async fn changes(&self, account: &Account<'_>, cursor: &Value) -> Result<Page, PullError> {
        let Cursor { changed_since } = read_place(cursor)?;
        let (entities, since) =
            (OBJECTS.each_ref().map(|object| object.entity).join(","), record::spelled(changed_since));
        let query = [MINOR_VERSION, ("entities", entities.as_str()), ("changedSince", since.as_str())];
        let answer = self.api.get::<Changed>(account, &LIMITS, &self.path(account, "cdc")?, &query).await;
        let is_too_old = |now: Option<DateTime<Utc>>| now.is_some_and(|now| now - changed_since > LOOK_BACK);
        let answer = match answer {
            Err(Refused::Lasting { answered_at, .. }) if is_too_old(answered_at) => return Err(too_old()),
            // Changes come without pages.
            Err(Refused::TooLarge { .. }) => return Err(too_many()),
            answer => answer?,
        };
        let now = told_at(answer.body.time.as_deref(), answer.answered_at);
        if is_too_old(now) {
            return Err(too_old());
        }
        let entities = || answer.body.responses.iter().flat_map(|response| &response.entities);
        if entities().map(|entities| entities.len()).sum::<usize>() >= CHANGES_MAX {
            return Err(too_many());
        }
        let (mut items, mut failed) = (Vec::new(), Vec::new());
        for object in &OBJECTS {
            for entities in entities() {
                let (changed, behind) = mapped(object, entities.of(object), 0);
                items.extend(changed);
                failed.extend(behind);
            }
        }
        let changed_since = now.map_or(changed_since, |now| now - OVERLAP);
        Ok(last(items, failed, json!(Cursor { changed_since })))
    }

    async fn found(&self, account: &Account<'_>, external_ids: &[String]) -> Result<Found, PullError> {
        let (mut items, mut failed) = (Vec::new(), Vec::new());
        for object in &OBJECTS {
            let ids = external_ids.iter().filter_map(|id| id.strip_prefix(object.name)?.strip_prefix(':'));
            let ids: Vec<&str> = ids.filter(|id| record::is_plain_id(id)).collect();
            let mut parts: Vec<&[&str]> = ids.chunks(FIND).rev().collect();
            while let Some(ids) = parts.pop() {
                let statement = format!(
                    "select * from {} where Id in ('{}'){} maxresults {PAGE}",
                    object.entity,
                    ids.join("', '"),
                    with_inactive(object, " and "),
                );
                match (self.query(account, &statement).await, ids) {
                    (Err(Refused::TooLarge { most, .. }), [id]) => {
                        failed.push(record::failed(object.name, Some(&json!(id)), too_large(most), Value::Null));
                    }
                    (Err(Refused::TooLarge { .. }), ids) => parts.extend(ids.chunks(ids.len().div_ceil(2)).rev()),
                    (answer, _) => {
                        let (present, behind) = mapped(object, answer?.response.of(object), 0);
                        items.extend(present);
                        failed.extend(behind);
                    }
                }
            }
        }
        Ok((items, failed))
    }

    async fn company(&self, account: &Account<'_>) -> Result<ApiAnswer<Company>, PullError> {
        let path = self.path(account, &format!("companyinfo/{}", account.account))?;
        Ok(self.api.get(account, &LIMITS, &path, &[MINOR_VERSION]).await?)
    }
}

impl Connector for Quickbooks {
    fn document_types(&self) -> &'static [&'static str] {
        SPEC.document_types
    }

    fn cursor<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        Box::pin(async move {
            let answer = self.company(account).await?;
            let Some(now) = told_at(answer.body.time.as_deref(), answer.answered_at) else {
                let what = format!("{} did not say what time it is", self.api.who());
                return Err(PullError::Unreadable { what, raw: String::new() });
            };
            Ok(Some(json!(Cursor { changed_since: now - OVERLAP })))
        })
    }

    fn full<'a>(
        &'a self,
        account: &'a Account<'a>,
        place: Option<&'a Value>,
        _is_first: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(self.full_page(account, place))
    }

    /// There is always one page.
    fn delta<'a>(
        &'a self,
        account: &'a Account<'a>,
        cursor: &'a Value,
        _place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(self.changes(account, cursor))
    }

    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>> {
        Box::pin(self.found(account, external_ids))
    }

    /// The realm came with the consent, so only the company's name is read.
    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async move {
            let name = self.company(account).await?.body.info.name.filter(|name| !name.trim().is_empty());
            let realm = account.account.to_owned();
            Ok(Identity { name: name.unwrap_or_else(|| format!("QuickBooks company {realm}")), account: realm })
        })
    }
}

fn too_large(most: usize) -> String {
    format!("it is larger than {} MiB", most >> 20)
}

fn too_many() -> PullError {
    PullError::CursorLost("QuickBooks reports too many changes at once to be sure of all")
}

fn too_old() -> PullError {
    PullError::CursorLost("QuickBooks keeps changes for 30 days, and the last sync is longer ago")
}

/// Includes inactive customers, which a query leaves out otherwise. Invoices are never inactive.
fn with_inactive(object: &Object, before: &str) -> String {
    if object.name == "customer" { format!("{before}Active in (true, false)") } else { String::new() }
}

/// Maps records, without the first `n_known`.
fn mapped(object: &Object, records: &Records, n_known: usize) -> Found {
    let read = records.read(object.name, |record| Some(map::raw(object.name, record)));
    sorted(read.skip(n_known), map::item)
}

#[cfg(test)]
mod tests;
