//! QuickBooks' customers and invoices by its REST API. A full pass queries each entity in the order of ids; a delta asks what changed,
//! which alone tells of deletions, and only of a month and a thousand records.

pub(crate) mod map;
mod wire;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::map::{OBJECTS, Object};
use self::wire::{Changed, Company, Queried, told_at};
use super::endpoints::{QUICKBOOKS_MINUTE, QUICKBOOKS_SECOND};
use super::http::{Answer, Api, Refused};
use super::records::{Records, sorted};
use super::trail::{Trail, follow};
use super::{Account, Connector, Found, Identity, Limit, OVERLAP, Page, PullError, last, more, read_place, record};

const LIMITS: [&Limit; 2] = [&QUICKBOOKS_SECOND, &QUICKBOOKS_MINUTE];
/// The oldest that is answered as we know it.
const MINOR_VERSION: (&str, &str) = ("minorversion", "75");
const PAGE: usize = 1_000;
const FIND: usize = 100;
/// From there on an answer of changes may have left some out.
const CHANGES_MAX: usize = 1_000;
/// Changes are kept for 30 days; a day less, for the time that passes while we ask.
const LOOK_BACK: TimeDelta = TimeDelta::days(29);

pub(super) struct Quickbooks {
    api: Api,
}

/// Where a full pass is. Positions are ours, so the trail is of first ids: an answer that never moves on is found by those.
#[derive(Serialize, Deserialize)]
struct QueryPlace {
    stream: usize,
    start: usize,
    trail: Option<Trail>,
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

    async fn query(&self, account: &Account<'_>, statement: &str) -> Result<Queried, PullError> {
        let query = [MINOR_VERSION, ("query", statement)];
        let answer: Answer<Queried> = self.api.get(account, &LIMITS, &self.path(account, "query")?, &query).await?;
        Ok(answer.body)
    }

    async fn full_page(&self, account: &Account<'_>, place: Option<&Value>) -> Result<Page, PullError> {
        let start = QueryPlace { stream: 0, start: 1, trail: None };
        let place: QueryPlace = place.map(read_place).transpose()?.unwrap_or(start);
        let Some(object) = OBJECTS.get(place.stream) else {
            return Err(PullError::CursorLost("our place in this account cannot be read"));
        };
        let statement = format!(
            "select * from {}{} orderby Id startposition {} maxresults {PAGE}",
            object.entity,
            with_inactive(object, " where "),
            place.start,
        );
        let queried = self.query(account, &statement).await?;
        let records = queried.response.of(object);
        let (items, failed) = mapped(object, records);
        // An empty page is the end, and a short one is not: what was cut short is not to be taken for all there is.
        if records.len() > 0 {
            let first = records.heads(|head: Head| record::plain_id(&head.id)).next();
            let trail = match first {
                Some(id) => Some(follow(self.api.who(), place.trail, id)?),
                None => place.trail,
            };
            let next = QueryPlace { stream: place.stream, start: place.start + records.len(), trail };
            return Ok(more(items, failed, json!(next)));
        }
        if place.stream + 1 == OBJECTS.len() {
            return Ok(last(items, failed, Value::Null));
        }
        Ok(more(items, failed, json!(QueryPlace { stream: place.stream + 1, start: 1, trail: None })))
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
            answer => answer?,
        };
        let now = told_at(answer.body.time.as_deref(), answer.answered_at);
        if is_too_old(now) {
            return Err(too_old());
        }
        let entities = || answer.body.responses.iter().flat_map(|response| &response.entities);
        if entities().map(|entities| entities.len()).sum::<usize>() >= CHANGES_MAX {
            return Err(PullError::CursorLost("QuickBooks reports too many changes at once to be sure of all"));
        }
        let (mut items, mut failed) = (Vec::new(), Vec::new());
        for object in &OBJECTS {
            for entities in entities() {
                let (changed, behind) = mapped(object, entities.of(object));
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
            let ids: Vec<String> = ids.filter(|id| record::is_plain_id(id)).map(|id| format!("'{id}'")).collect();
            for ids in ids.chunks(FIND) {
                let statement = format!(
                    "select * from {} where Id in ({}){} maxresults {PAGE}",
                    object.entity,
                    ids.join(", "),
                    with_inactive(object, " and "),
                );
                let queried = self.query(account, &statement).await?;
                let (present, behind) = mapped(object, queried.response.of(object));
                items.extend(present);
                failed.extend(behind);
            }
        }
        Ok((items, failed))
    }

    async fn company(&self, account: &Account<'_>) -> Result<Answer<Company>, PullError> {
        let path = self.path(account, &format!("companyinfo/{}", account.account))?;
        Ok(self.api.get(account, &LIMITS, &path, &[MINOR_VERSION]).await?)
    }
}

impl Connector for Quickbooks {
    fn document_types(&self) -> &'static [&'static str] {
        &["quickbooks.customer", "quickbooks.invoice"]
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

    /// Always the only page.
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

    /// The realm came with the consent; what is left to learn is the company's name.
    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async move {
            let name = self.company(account).await?.body.info.name.filter(|name| !name.trim().is_empty());
            let realm = account.account.to_owned();
            Ok(Identity { name: name.unwrap_or_else(|| format!("QuickBooks company {realm}")), account: realm })
        })
    }
}

fn too_old() -> PullError {
    PullError::CursorLost("QuickBooks keeps changes for 30 days, and the last sync is longer ago")
}

/// A query leaves out inactive customers unless it is asked for them; invoices are never inactive.
fn with_inactive(object: &Object, before: &str) -> String {
    if object.name == "customer" { format!("{before}Active in (true, false)") } else { String::new() }
}

fn mapped(object: &Object, records: &Records) -> Found {
    sorted(records.read(object.name, |record| Some(map::raw(object.name, record))), map::item)
}
