//! Reads mailboxes of Gmail. A full pass lists messages, the newest first, and fetches each with all its bytes. A delta follows the
//! mailbox's history, which tells of deletions and of labels too.
//!
//! The history may lag behind its own number: a mailbox can say that it is at 112 before change 112 can be read. A cursor therefore moves to
//! the last change that was read, and to the mailbox's own number only when that is some minutes old and still nothing came before it.

mod batch;
mod census;
mod fetch;
mod fold;
mod guide;
mod map;
mod notices;
mod query;
mod spec;
mod tools;
mod watch;
mod wire;

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::fetch::{AT_ONCE, Got, Names};
use self::fold::{Then, fold};
use self::query::Query;
pub use self::spec::SPEC;
use self::wire::{History, Messages, Profile};
use super::http::{Api, ApiAnswer, Refused};
use super::trail::{Trail, follow};
use super::{Account, Connector, Found, Identity, Page, PullError, Reach, last, more, read_place, record};

/// Every path that is about the mailbox's owner begins so.
const USER: &str = "/gmail/v1/users/me";
/// Costs in quota units.
const LIST: u32 = 5;
const HISTORY: u32 = 2;
const PROFILE: u32 = 1;
const LIST_PAGE: &str = "500";
const HISTORY_PAGE: &str = "100";
/// The messages of a look-up come with all their bytes.
const FIND_MAX: usize = AT_ONCE;
/// So many listings without a message to take are one page.
const LISTINGS_MAX: usize = 20;
/// The longest time for which a change may be missing from the history after the mailbox's number has moved.
const LAG: TimeDelta = TimeDelta::minutes(5);
/// A delta whose page tokens die oftener than that begins with everything.
const RESTARTS_MAX: u32 = 3;
const LOST: PullError = PullError::CursorLost("Gmail no longer knows our place in its history");

pub(super) struct Gmail {
    api: Api,
    first_max: usize,
    /// The topic that is to be told of changes. None: nobody hears of them.
    topic: Option<String>,
}

/// The position of a full pass. A page whose messages are too much for one time is listed again, without those that are done.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct FullPlace {
    trail: Option<Trail>,
    done: Vec<String>,
    /// The conversations that a first sync takes, as far as it has met them.
    threads: Vec<String>,
    is_capped: bool,
    /// The last message before the first one that was left out: all that came in since were taken.
    reached: Option<String>,
}

/// The position of the next delta.
#[derive(Clone, Serialize, Deserialize)]
struct Cursor {
    /// Every change up to this one was read.
    history_id: String,
    /// The mailbox's own number, which is too young to be believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Heard>,
    /// Messages that were added and could not be found: the look-up may lag behind the history. They are looked up once more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    again: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Heard {
    history_id: String,
    /// By the provider's clock.
    at: DateTime<Utc>,
}

/// The position within a delta.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct DeltaPlace {
    trail: Option<Trail>,
    /// The messages of the page that were read, and the last change that it told then.
    done: Vec<String>,
    done_until: u64,
    /// The mailbox's own number, as the first page told it.
    told: Option<Heard>,
    /// The last change that was read.
    seen: u64,
    /// Messages that were not there.
    again: Vec<String>,
    restarts: u32,
}

impl Gmail {
    /// `first_max` is how many conversations a first sync takes.
    fn new(api: Api, first_max: usize, topic: Option<String>) -> Self {
        Self { api, first_max, topic }
    }

    /// Waits until a request of this cost may be sent.
    async fn turn(&self, account: &Account<'_>, units: u32) -> Result<(), PullError> {
        account.pace.turn(&spec::UNITS, units).await
    }

    async fn profile(&self, account: &Account<'_>) -> Result<Profile, PullError> {
        self.turn(account, PROFILE).await?;
        Ok(self.api.get(account, &[], &format!("{USER}/profile"), &[]).await?.body)
    }

    async fn full_page(&self, account: &Account<'_>, place: Option<&Value>, is_first: bool) -> Result<Page, PullError> {
        let mut place: FullPlace = place.map(read_place).transpose()?.unwrap_or_default();
        let query = Query::of(account.places);
        for _ in 0..LISTINGS_MAX {
            let list = self.list(account, &query, place.trail.as_ref()).await?;
            let ids = self.chosen(&list, &mut place, is_first);
            let taken = self.take(account, &ids, std::mem::take(&mut place.done)).await?;
            // What vanished since it was listed was never met.
            let gone: HashSet<String> = taken.gone.iter().map(|id| map::external_id(id)).collect();
            let items: Vec<_> = taken.items.into_iter().filter(|item| !gone.contains(&item.raw.external_id)).collect();
            if !taken.is_whole {
                return Ok(more(items, taken.failed, json!(FullPlace { done: taken.done, ..place })));
            }
            let Some(token) = list.next_page_token.filter(|token| !token.is_empty()) else {
                let note = (is_first && place.is_capped).then(|| {
                    let most = self.first_max;
                    format!("The newest {most} conversations were taken; older letters come in when they change, or with a full sync.")
                });
                let reach = match is_first && place.is_capped {
                    true => self.reach(account, place.reached).await?,
                    false => Reach::All,
                };
                return Ok(Page { note, reach, ..last(items, taken.failed, Value::Null) });
            };
            place.trail = Some(follow(self.api.who(), place.trail, token)?);
            if !items.is_empty() || !taken.failed.is_empty() {
                return Ok(more(items, taken.failed, json!(place)));
            }
        }
        Ok(more(Vec::new(), Vec::new(), json!(place)))
    }

    /// The messages of a listing that are taken. A first sync takes whole conversations, until it has enough of them.
    fn chosen(&self, list: &Messages, place: &mut FullPlace, is_first: bool) -> Vec<String> {
        let mut threads: HashSet<String> = place.threads.iter().cloned().collect();
        let mut chosen = Vec::new();
        for listed in list.listed().filter(|listed| record::is_plain_id(&listed.id)) {
            let thread = listed.thread_id.as_ref().unwrap_or(&listed.id);
            if is_first && !threads.contains(thread) {
                if threads.len() >= self.first_max {
                    if !place.is_capped {
                        place.reached = chosen.last().cloned().or(place.reached.take());
                    }
                    place.is_capped = true;
                    continue;
                }
                threads.insert(thread.clone());
                place.threads.push(thread.clone());
            }
            chosen.push(listed.id.clone());
        }
        if !place.is_capped {
            place.reached = chosen.last().cloned().or(place.reached.take());
        }
        chosen
    }

    /// From when on a first sync has taken all messages. The list has the newest first.
    async fn reach(&self, account: &Account<'_>, reached: Option<String>) -> Result<Reach, PullError> {
        let Some(id) = reached else { return Ok(Reach::Part) };
        for (_, got) in self.get(account, &[id], "minimal").await? {
            if let Got::Message(message) = got
                && let Some(at) = map::received_at(&message)
            {
                return Ok(Reach::From(at));
            }
        }
        Ok(Reach::Part) // it vanished since
    }

    async fn list(&self, account: &Account<'_>, query: &Query, trail: Option<&Trail>) -> Result<Messages, PullError> {
        self.turn(account, LIST).await?;
        let mut pairs = vec![("q", query.q.as_str()), ("maxResults", LIST_PAGE)];
        pairs.push(("includeSpamTrash", if query.with_spam_and_trash { "true" } else { "false" }));
        pairs.extend(trail.map(|trail| ("pageToken", trail.after.as_str())));
        match self.api.get::<Messages>(account, &[], &format!("{USER}/messages"), &pairs).await {
            Err(Refused::Lasting { status: 400 | 404 | 410, .. }) if trail.is_some() => {
                Err(PullError::CursorLost("Gmail no longer knows our place in its list"))
            }
            answer => {
                let list = answer?.body;
                if list.messages.is_none() && list.result_size_estimate.is_none() {
                    return Err(self.api.unreadable("an answer of another form", &[], account.token));
                }
                Ok(list)
            }
        }
    }

    async fn delta_page(
        &self,
        account: &Account<'_>,
        cursor: &Value,
        place: Option<&Value>,
    ) -> Result<Page, PullError> {
        let cursor: Cursor = read_place(cursor)?;
        let mut place: DeltaPlace = place.map(read_place).transpose()?.unwrap_or_default();
        let is_beginning = place.trail.is_none();
        let answer = match self.history(account, &cursor, place.trail.as_ref()).await? {
            Some(answer) => answer,
            // The token of the page died. The history is read again from where the delta began.
            None if place.restarts < RESTARTS_MAX => {
                let restarts = place.restarts + 1;
                return Ok(more(Vec::new(), Vec::new(), json!(DeltaPlace { restarts, ..DeltaPlace::default() })));
            }
            None => return Err(LOST),
        };
        let history = answer.body;
        if is_beginning && place.told.is_none() {
            place.told = answer.answered_at.map(|at| Heard { history_id: history.history_id.clone(), at });
        }
        let records = &history.history.0;
        // A page that is read again may have grown: what changed since is no longer done.
        let later = records.iter().position(|record| number(&record.id) > place.done_until).unwrap_or(records.len());
        let later: HashSet<String> = fold(&records[later..], account.places).into_iter().map(|(id, _)| id).collect();
        place.done.retain(|id| !later.contains(id));
        let mut changes = fold(records, account.places);
        if is_beginning {
            let known: HashSet<String> = changes.iter().map(|(id, _)| id.clone()).collect();
            let again = cursor.again.iter().filter(|id| !known.contains(*id));
            changes.extend(again.map(|id| (id.clone(), Then::Fetch)));
        }
        changes.retain(|(id, _)| record::is_plain_id(id));

        let fetched: Vec<String> =
            changes.iter().filter(|(_, then)| *then == Then::Fetch).map(|(id, _)| id.clone()).collect();
        // Burials are told with each part of a page: it costs nothing, and nothing depends on their number.
        let mut items: Vec<_> =
            changes.iter().filter(|(_, then)| *then == Then::Bury).map(|(id, _)| map::tombstone(id)).collect();
        let taken = self.take(account, &fetched, std::mem::take(&mut place.done)).await?;
        items.extend(taken.items);
        place.again.extend(taken.gone.into_iter().filter(|id| !cursor.again.contains(id)));
        let seen = records.iter().map(|record| number(&record.id)).fold(place.seen, u64::max);
        if !taken.is_whole {
            return Ok(more(items, taken.failed, json!(DeltaPlace { done: taken.done, done_until: seen, ..place })));
        }
        place.seen = seen;
        match history.next_page_token.filter(|token| !token.is_empty()) {
            Some(token) => {
                place.trail = Some(follow(self.api.who(), place.trail, token)?);
                Ok(more(items, taken.failed, json!(place)))
            }
            None => Ok(last(items, taken.failed, json!(cursor.after(place)))),
        }
    }

    /// A page of the history. None: the token of the page is no longer good.
    async fn history(
        &self,
        account: &Account<'_>,
        cursor: &Cursor,
        trail: Option<&Trail>,
    ) -> Result<Option<ApiAnswer<History>>, PullError> {
        self.turn(account, HISTORY).await?;
        let mut query = vec![("startHistoryId", cursor.history_id.as_str()), ("maxResults", HISTORY_PAGE)];
        query.extend(
            ["messageAdded", "messageDeleted", "labelAdded", "labelRemoved"].map(|kind| ("historyTypes", kind)),
        );
        query.extend(trail.map(|trail| ("pageToken", trail.after.as_str())));
        match self.api.get(account, &[], &format!("{USER}/history"), &query).await {
            Ok(answer) => Ok(Some(answer)),
            Err(Refused::Lasting { status: 404 | 410, .. }) => Err(LOST),
            Err(Refused::Lasting { status: 400, code, .. }) if code.as_deref() != Some("failedPrecondition") => {
                if trail.is_some() { Ok(None) } else { Err(LOST) }
            }
            Err(refused) => Err(refused.into()),
        }
    }

    async fn found(&self, account: &Account<'_>, external_ids: &[String]) -> Result<Found, PullError> {
        let ids = external_ids.iter().filter_map(|id| id.strip_prefix(map::OBJECT)?.strip_prefix(':'));
        let ids: Vec<String> = ids.filter(|id| record::is_plain_id(id)).map(str::to_owned).collect();
        let (mut items, mut failed, mut names) = (Vec::new(), Vec::new(), Names::default());
        for ids in ids.chunks(AT_ONCE) {
            for (_, got) in self.get(account, ids, "raw").await? {
                match got {
                    Got::Message(message) => match self.item(account, &message, &mut names).await? {
                        // What lies where nobody reads is missing, like what is gone.
                        Ok(item) if item.raw.is_deleted => {}
                        Ok(item) => items.push(item),
                        Err(behind) => failed.push(behind),
                    },
                    Got::Gone => {}
                    Got::Failed(behind) => failed.push(behind),
                }
            }
        }
        Ok((items, failed))
    }
}

impl Cursor {
    fn at(history_id: String) -> Self {
        Self { history_id, told: None, again: Vec::new() }
    }

    /// The cursor after a delta. It never moves back.
    fn after(self, place: DeltaPlace) -> Self {
        let mut reached = number(&self.history_id).max(place.seen);
        // Every change up to a number that was heard so long ago was there to be read this time.
        let now = place.told.as_ref().map(|heard| heard.at);
        let (old, young) = match self.told {
            Some(heard) if now.is_some_and(|now| heard.at + LAG <= now) => (Some(heard), place.told),
            Some(heard) => (None, Some(heard)),
            None => (None, place.told),
        };
        reached = old.map_or(reached, |heard| reached.max(number(&heard.history_id)));
        let told = young.filter(|heard| number(&heard.history_id) > reached);
        Self { history_id: reached.to_string(), told, again: place.again }
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

impl Connector for Gmail {
    /// Letters alone: their files come and go with them.
    fn document_types(&self) -> &'static [&'static str] {
        &[map::MESSAGE]
    }

    fn cursor<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        Box::pin(async move { Ok(Some(json!(Cursor::at(self.profile(account).await?.history_id)))) })
    }

    fn full<'a>(
        &'a self,
        account: &'a Account<'a>,
        place: Option<&'a Value>,
        is_first: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(self.full_page(account, place, is_first))
    }

    fn delta<'a>(
        &'a self,
        account: &'a Account<'a>,
        cursor: &'a Value,
        place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(self.delta_page(account, cursor, place))
    }

    fn find_max(&self) -> usize {
        FIND_MAX
    }

    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>> {
        Box::pin(self.found(account, external_ids))
    }

    /// The address in lower case, as notices name it.
    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async move {
            let address = self.profile(account).await?.email_address;
            if address.trim().is_empty() {
                let what = format!("{} did not say whose mailbox this is", self.api.who());
                return Err(PullError::Unreadable { what, raw: String::new() });
            }
            Ok(Identity { account: address.trim().to_lowercase(), name: address })
        })
    }
}

#[cfg(test)]
mod tests;
