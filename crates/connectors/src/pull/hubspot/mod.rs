//! Reads HubSpot's contacts, companies and deals by its REST API. A full pass lists them. A delta searches by the time of change and then
//! lists the archive, since a search shows no deletions.

mod clients;
mod complaint;
mod guide;
mod labels;
pub(super) mod map;
mod spec;
mod tools;
mod wire;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::map::{CREATED, OBJECTS, Object};
pub use self::spec::SPEC;
use self::wire::{Associations, Batch, BatchError, Details, Head, List};
use super::http::{Api, ApiAnswer, Refused};
use super::records::{Records, sorted};
use super::trail::{Trail, follow, same_page};
use super::{Account, Connector, Found, Identity, Limit, OVERLAP, Page, PullError, last, more, read_place, record};

/// The number of records in a page, a search and a batch.
const PAGE: usize = 100;
/// A search ends after so many results, however it is paged.
const SEARCH_MAX: u64 = 10_000;
/// Most pages of one record's companies: more are a circle.
const COMPANY_PAGES_MAX: usize = 200;

const GENERAL: [&Limit; 1] = [&spec::GENERAL];
const SEARCH: [&Limit; 2] = [&spec::GENERAL, &spec::SEARCH];

pub(super) struct Hubspot {
    api: Api,
    version: String,
}

/// The position of a full pass.
#[derive(Default, Serialize, Deserialize)]
struct ListPlace {
    stream: usize,
    trail: Option<Trail>,
}

#[derive(Serialize, Deserialize)]
struct Cursor {
    since_ms: i64,
}

/// The position of a delta: each stream is searched, then its archive is listed.
#[derive(Serialize, Deserialize)]
struct DeltaPlace {
    step: usize,
    /// The start of the next delta, known with the first answer.
    next_ms: Option<i64>,
    /// The search has read everything before this time.
    bound_ms: i64,
    trail: Option<Trail>,
}

impl Hubspot {
    /// `version` is a date, or `v3`.
    pub fn new(api: Api, version: &str) -> Self {
        Self { api, version: version.to_owned() }
    }

    fn objects(&self, object: &Object) -> String {
        let Object { plural, .. } = object;
        match self.version.as_str() {
            "v3" => format!("/crm/v3/objects/{plural}"),
            date => format!("/crm/objects/{date}/{plural}"),
        }
    }

    fn associations(&self, from: &Object) -> String {
        let from = from.plural;
        match self.version.as_str() {
            "v3" => format!("/crm/v4/associations/{from}/companies/batch/read"),
            date => format!("/crm/associations/{date}/{from}/companies/batch/read"),
        }
    }

    async fn list(
        &self,
        account: &Account<'_>,
        object: &Object,
        is_archived: bool,
        after: Option<&str>,
    ) -> Result<ApiAnswer<List>, PullError> {
        let (limit, properties) = (PAGE.to_string(), properties(object).join(","));
        let mut query = vec![("limit", limit.as_str()), ("properties", properties.as_str())];
        query.push(("archived", if is_archived { "true" } else { "false" }));
        if object.has_companies && !is_archived {
            query.push(("associations", "companies"));
        }
        query.extend(after.map(|after| ("after", after)));
        let answer = self.api.get(account, &GENERAL, &self.objects(object), &query).await;
        match answer {
            // Without a token there is nothing to reject.
            Err(Refused::Lasting { status: 400, .. }) if after.is_some() => {
                Err(PullError::CursorLost("HubSpot no longer knows our place in its list"))
            }
            answer => Ok(answer?),
        }
    }

    async fn full_page(&self, account: &Account<'_>, place: Option<&Value>) -> Result<Page, PullError> {
        let place: ListPlace = place.map(read_place).transpose()?.unwrap_or_default();
        let object = OBJECTS.get(place.stream).ok_or_else(no_such_stream)?;
        let after = place.trail.as_ref().map(|trail| trail.after.as_str());
        let mut list = self.list(account, object, false, after).await?.body;
        let wanting: Vec<String> = list.results.heads(wants_companies).collect();
        let companies = self.companies(account, object, wanting).await?;
        let (items, failed) = mapped(object, &list.results, &companies);

        let (stream, trail) = match list.next() {
            Some(token) => (place.stream, Some(follow(self.api.who(), place.trail, token)?)),
            None if place.stream + 1 == OBJECTS.len() => return Ok(last(items, failed, Value::Null)),
            None => (place.stream + 1, None),
        };
        Ok(more(items, failed, json!(ListPlace { stream, trail })))
    }

    async fn delta_page(
        &self,
        account: &Account<'_>,
        cursor: &Value,
        place: Option<&Value>,
    ) -> Result<Page, PullError> {
        let Cursor { since_ms } = read_place(cursor)?;
        let start = DeltaPlace { step: 0, next_ms: None, bound_ms: since_ms, trail: None };
        let mut place = place.map(read_place).transpose()?.unwrap_or(start);
        let (step, object) = (place.step, OBJECTS.get(place.step / 2).ok_or_else(no_such_stream)?);
        let (answered_at, (items, failed)) = if step.is_multiple_of(2) {
            self.changed(account, object, &mut place).await?
        } else {
            self.archived(account, object, since_ms, &mut place).await?
        };
        // Taken before anything was enumerated. If HubSpot does not tell its time, the next delta starts where this one started.
        let next_ms = place.next_ms.or(answered_at.map(since)).unwrap_or(since_ms);
        if place.step == 2 * OBJECTS.len() {
            return Ok(last(items, failed, json!(Cursor { since_ms: next_ms })));
        }
        if place.step != step {
            place.bound_ms = since_ms;
        }
        place.next_ms = Some(next_ms);
        Ok(more(items, failed, json!(place)))
    }

    /// Reads one page of changes and moves `place` behind it. A search is paged by time rather than by number where the times differ:
    /// records that change meanwhile move to the end, and paging by number would miss as many others. A search also ends after ten thousand.
    async fn changed(
        &self,
        account: &Account<'_>,
        object: &Object,
        place: &mut DeltaPlace,
    ) -> Result<(Option<DateTime<Utc>>, Found), PullError> {
        let mut question = json!({
            "filterGroups": [{ "filters": [
                { "propertyName": object.modified, "operator": "GTE", "value": place.bound_ms.to_string() },
            ] }],
            "sorts": [{ "propertyName": object.modified, "direction": "ASCENDING" }],
            "properties": properties(object),
            "limit": PAGE,
        });
        if let Some(trail) = &place.trail {
            question["after"] = json!(trail.after);
        }
        let path = format!("{}/search", self.objects(object));
        let answer: ApiAnswer<List> = self.api.post(account, &SEARCH, &path, &question).await?;
        let mut list = answer.body;
        let ids: Vec<String> = list.results.heads(|head: Head| record::plain_id(&head.id)).collect();
        let companies = self.companies(account, object, ids).await?;
        let (items, failed) = mapped(object, &list.results, &companies);

        let Some(token) = list.next() else {
            (place.step, place.trail) = (place.step + 1, None);
            return Ok((answer.answered_at, (items, failed)));
        };
        let times: Vec<i64> = items.iter().filter_map(|item| item.raw.source_updated_at).map(millis).collect();
        let latest_ms = times.iter().copied().max().filter(|latest_ms| *latest_ms > place.bound_ms);
        let is_at_end = token.parse::<u64>().is_ok_and(|number| number >= SEARCH_MAX);
        match latest_ms {
            // Out of order means that a record changed after the index had sorted it.
            Some(latest_ms) if times.is_sorted() || is_at_end => (place.bound_ms, place.trail) = (latest_ms, None),
            None if is_at_end => {
                return Err(PullError::CursorLost("HubSpot has more changes of one moment than it can list"));
            }
            _ => place.trail = Some(follow(self.api.who(), place.trail.take(), token)?),
        }
        Ok((answer.answered_at, (items, failed)))
    }

    /// Reads one page of the archive and keeps what was archived since `since_ms`.
    async fn archived(
        &self,
        account: &Account<'_>,
        object: &Object,
        since_ms: i64,
        place: &mut DeltaPlace,
    ) -> Result<(Option<DateTime<Utc>>, Found), PullError> {
        let after = place.trail.as_ref().map(|trail| trail.after.as_str());
        let answer = self.list(account, object, true, after).await?;
        let mut list = answer.body;
        let read = list.results.read(object.name, |record| {
            // A record that is not marked as archived: the server may have ignored our parameter.
            let is_archived = record.get("archived").and_then(Value::as_bool) == Some(true);
            let archived_at = record::time(record.get("archivedAt"));
            let is_old = archived_at.is_some_and(|time| time.timestamp_millis() < since_ms);
            (is_archived && !is_old).then(|| map::raw(object.name, record))
        });
        let found = sorted(read, map::item);
        match list.next() {
            Some(token) => place.trail = Some(follow(self.api.who(), place.trail.take(), token)?),
            None => (place.step, place.trail) = (place.step + 1, None),
        }
        Ok((answer.answered_at, found))
    }

    /// Reads the companies that these records belong to: an entry for each record.
    async fn companies(
        &self,
        account: &Account<'_>,
        object: &Object,
        ids: Vec<String>,
    ) -> Result<HashMap<String, Vec<String>>, PullError> {
        let mut companies: HashMap<String, Vec<String>> = HashMap::new();
        if !object.has_companies || ids.is_empty() {
            return Ok(companies);
        }
        let mut inputs: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
        companies.extend(ids.into_iter().map(|id| (id, Vec::new())));
        for _ in 0..COMPANY_PAGES_MAX {
            let path = self.associations(object);
            let question = json!({ "inputs": inputs });
            let answer: ApiAnswer<Associations> = self.api.post(account, &GENERAL, &path, &question).await?;
            self.check(&answer.body.errors)?;
            inputs = Vec::new();
            for mut linked in answer.body.results {
                let Some(id) = record::plain_id(&linked.from.id) else { continue };
                let Some(known) = companies.get_mut(&id) else { continue };
                known.extend(linked.to.iter().filter_map(|to| record::plain_id(&to.id)));
                inputs.extend(linked.next().map(|after| json!({ "id": id, "after": after })));
            }
            if inputs.is_empty() {
                return Ok(companies);
            }
        }
        Err(same_page(self.api.who()))
    }

    /// Fails if a record could not be read for another reason than its absence: it may be there.
    fn check(&self, errors: &[BatchError]) -> Result<(), PullError> {
        if errors.iter().all(BatchError::is_absence) {
            return Ok(());
        }
        Err(PullError::Passing(format!("{} answered only a part of what was asked", self.api.who())))
    }

    async fn found(&self, account: &Account<'_>, external_ids: &[String]) -> Result<Found, PullError> {
        let (mut items, mut failed) = (Vec::new(), Vec::new());
        for object in &OBJECTS {
            let ids = external_ids.iter().filter_map(|id| id.strip_prefix(object.name)?.strip_prefix(':'));
            let ids: Vec<&str> = ids.filter(|id| record::is_plain_id(id)).collect();
            for ids in ids.chunks(PAGE) {
                let inputs: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
                let question = json!({ "properties": properties(object), "inputs": inputs });
                let path = format!("{}/batch/read", self.objects(object));
                let answer: ApiAnswer<Batch> = self.api.post(account, &GENERAL, &path, &question).await?;
                self.check(&answer.body.errors)?;
                let records = answer.body.results;
                let present: Vec<String> = records.heads(|head: Head| record::plain_id(&head.id)).collect();
                let companies = self.companies(account, object, present).await?;
                let (more, behind) = mapped(object, &records, &companies);
                items.extend(more.into_iter().filter(|item| !item.raw.is_deleted));
                failed.extend(behind);
            }
        }
        Ok((items, failed))
    }
}

impl Connector for Hubspot {
    fn document_types(&self) -> &'static [&'static str] {
        SPEC.document_types
    }

    fn cursor<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        Box::pin(async move {
            let path = self.objects(&OBJECTS[0]);
            let answer: ApiAnswer<List> = self.api.get(account, &GENERAL, &path, &[("limit", "1")]).await?;
            let Some(now) = answer.answered_at else {
                let what = format!("{} did not say what time it is", self.api.who());
                return Err(PullError::Unreadable { what, raw: String::new() });
            };
            Ok(Some(json!(Cursor { since_ms: since(now) })))
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

    fn delta<'a>(
        &'a self,
        account: &'a Account<'a>,
        cursor: &'a Value,
        place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(self.delta_page(account, cursor, place))
    }

    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>> {
        Box::pin(self.found(account, external_ids))
    }

    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async move {
            let path = format!("/account-info/{}/details", self.version);
            let answer: ApiAnswer<Details> = self.api.get(account, &GENERAL, &path, &[]).await?;
            let portal = answer.body.portal_id.to_string();
            Ok(Identity { name: format!("HubSpot account {portal}"), account: portal })
        })
    }
}

/// The properties to ask for. HubSpot leaves out those that are not named.
fn properties(object: &Object) -> Vec<&'static str> {
    let mut properties = object.properties.to_vec();
    properties.extend([object.modified, CREATED]);
    properties
}

fn since(now: DateTime<Utc>) -> i64 {
    millis(now - OVERLAP)
}

fn millis(time: DateTime<Utc>) -> i64 {
    time.timestamp_millis()
}

fn no_such_stream() -> PullError {
    PullError::CursorLost("our place in this account cannot be read")
}

/// The id of a listed record that has more companies than the list shows.
fn wants_companies(head: Head) -> Option<String> {
    let id = record::plain_id(&head.id)?;
    head.has_more_companies().then_some(id)
}

/// Maps records. A record with an entry in `companies` belongs to those companies, whatever it says itself.
fn mapped(object: &Object, records: &Records, companies: &HashMap<String, Vec<String>>) -> Found {
    let read = records.read(object.name, |mut record| {
        let known = record.get("id").and_then(record::plain_id).and_then(|id| companies.get(&id));
        if let (Some(known), Some(fields)) = (known, record.as_object_mut()) {
            fields.insert("associations".to_owned(), json!({ "companies": known }));
        }
        Some(map::raw(object.name, record))
    });
    sorted(read, map::item)
}

#[cfg(test)]
mod tests;
