//! Accounts at providers, read page by page. A connector turns what a provider says into [`Item`]s and its place into a value that the
//! caller keeps: it is stored in the transaction that stores the page, so that a crash reads again and never skips.
//!
//! Provider words stop here: what leaves is records, facts of clients, and [`PullError`]s that name neither token nor anything a record
//! says.

pub mod clients;
mod complaint;
pub(crate) mod drive;
pub mod endpoints;
mod fixtures;
mod http;
pub(crate) mod hubspot;
mod listing;
mod mcp;
pub mod oauth;
pub(crate) mod quickbooks;
mod record;
mod records;
mod trail;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{Provider, Secret};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::clients::{ROLLED_UP, client_facts, is_client};
pub use self::endpoints::Endpoints;
pub use self::fixtures::fixtures;
use self::http::Api;
pub use self::mcp::mcp;
use crate::Http;

/// How far a delta reaches back before the moment that it starts from: what changed just then may not have been in the provider's index.
const OVERLAP: TimeDelta = TimeDelta::minutes(5);

/// One account, as a request to its provider needs it.
pub struct Account<'a> {
    /// The bearer, good now.
    pub token: &'a Secret,
    /// The provider's name for it: HubSpot's portal, QuickBooks' realm, the address of a Drive.
    pub account: &'a str,
    /// Called before every request.
    pub pace: &'a dyn Pace,
}

/// Holds requests back to what the provider allows, over all processes that ask for one account.
pub trait Pace: Send + Sync {
    /// Returns when so many units of a limit may be spent.
    fn turn<'a>(&'a self, limit: &'static Limit, units: u32) -> BoxFuture<'a, Result<(), PullError>>;
}

/// A limit in the provider's own units: at most so many in any so many seconds, for one account.
#[derive(Debug, PartialEq, Eq)]
pub struct Limit {
    /// Stored in rows: never renamed.
    pub name: &'static str,
    pub units: u32,
    pub per_secs: u32,
}

/// One record as it came, whatever the transport.
#[derive(Clone, Debug, PartialEq)]
pub struct RawItem {
    /// `<object>:<provider's id>`.
    pub external_id: String,
    /// Such as `hubspot.contact`.
    pub document_type: &'static str,
    /// As the provider spells it; with a file's text, where it has one, as `text`.
    pub payload: Value,
    pub source_created_at: Option<DateTime<Utc>>,
    pub source_updated_at: Option<DateTime<Utc>>,
    /// The provider deleted it; the payload says nothing then.
    pub is_deleted: bool,
}

/// A record as memory takes it: what `map` made of a [`RawItem`].
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub raw: RawItem,
    pub title: Option<String>,
    /// Every mapped field in words, in an order of ours, so that the same record gives the same text by every transport.
    pub text: String,
    /// External ids of records this one says something about; itself where it is a client.
    pub mentions: Vec<String>,
}

/// A record that could not be read, and stays behind without holding up the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    /// Its external id, else `<object>:?<n>`.
    pub external_id: String,
    /// In words of ours.
    pub reason: String,
    /// What came, as far as it is JSON.
    pub payload: Value,
}

/// Whether its provider can be asked for a record that could not be read. One without an id is called after what it says
/// (`contact:?1a2b3c4d`), an answer that was none `answer`: the next full pass meets those again, and nothing else does.
pub fn is_named(external_id: &str) -> bool {
    external_id.split_once(':').is_some_and(|(_, id)| !id.is_empty() && !id.starts_with('?'))
}

/// One page, and where the next one begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub items: Vec<Item>,
    pub failed: Vec<Failed>,
    /// With `more`: where to go on. Without: for a delta the cursor from which the next delta starts; for a full pass nothing.
    pub next: Value,
    pub more: bool,
    /// What a person is told, such as that a first sync was capped.
    pub note: Option<String>,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    #[error("{who} asked us to wait {} s", retry_after.as_secs())]
    RateLimited { who: &'static str, retry_after: Duration },
    /// The token is not good (401).
    #[error("{who} refused the token")]
    Unauthorized { who: &'static str },
    /// Refused with a good token (403): a scope or a permission is missing. A code of the provider's, never its sentences.
    #[error("{who} refused what we asked for ({code})")]
    Forbidden { who: &'static str, code: String },
    /// The same may succeed later: 5xx, a broken connection, too slow.
    #[error("{0}")]
    Passing(String),
    /// An answer that is not the provider's API's: garbage, HTML, cut off, another shape. The beginning of it, for a person.
    #[error("{what}")]
    Unreadable { what: String, raw: String },
    /// The provider no longer knows our place: everything has to be read again.
    #[error("{0}")]
    CursorLost(&'static str),
}

/// Records, and what stays behind of them.
pub type Found = (Vec<Item>, Vec<Failed>);

/// What every provider's connector does. `place` is what the page before gave as `next`; none at the beginning.
pub trait Connector: Send + Sync {
    /// The document types that a full pass reads all of: what it did not meet, and `find` does not find, is gone.
    fn document_types(&self) -> &'static [&'static str];

    /// From where a delta that starts after this moment has to begin. Taken before the first page of a full pass. None: this transport
    /// knows no changes, and every sync is a full pass.
    fn cursor<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>>;

    /// One page of everything. `is_first`: caps on a first sync apply.
    fn full<'a>(
        &'a self,
        account: &'a Account<'a>,
        place: Option<&'a Value>,
        is_first: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>>;

    /// One page of what changed since `cursor`: one that [`Connector::cursor`] or the last page of a delta gave.
    fn delta<'a>(
        &'a self,
        account: &'a Account<'a>,
        cursor: &'a Value,
        place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>>;

    /// How many records [`Connector::find`] is asked for at most.
    fn find_max(&self) -> usize {
        100
    }

    /// These records as they are now, in no order; what is missing in the answer is gone at the provider.
    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>>;

    /// Whose account the token opens: what [`Account::account`] is from then on, and how a person would call it.
    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub account: String,
    pub name: String,
}

/// What a client's records say of it, made from them alone: the same records give the same facts in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientFacts {
    pub client_name: String,
    pub industry: Option<String>,
    pub summary: Option<String>,
    /// Named facts, as they are stored in `client_intelligence.key_facts`.
    pub key_facts: serde_json::Map<String, Value>,
    /// Which records each fact rests on, by external id: `industry`, `summary` and the names of `key_facts`.
    pub evidence: Vec<(String, Vec<String>)>,
}

/// A stored record, for [`client_facts`].
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    pub external_id: &'a str,
    pub document_type: &'a str,
    pub payload: &'a Value,
    pub source_updated_at: Option<DateTime<Utc>>,
}

/// The provider's own API. `drive_first_max`: how many files a first sync takes.
pub fn rest(provider: Provider, endpoints: &Endpoints, http: &Http, drive_first_max: usize) -> Arc<dyn Connector> {
    let api = Api::new(http, &endpoints.api_url, provider);
    match provider {
        Provider::Hubspot => Arc::new(hubspot::Hubspot::new(api, endpoints.version.as_deref())),
        Provider::Quickbooks => Arc::new(quickbooks::Quickbooks::new(api)),
        Provider::GoogleDrive => Arc::new(drive::Drive::new(api, drive_first_max)),
    }
}

/// A place or a cursor, as we wrote it.
fn read_place<T: DeserializeOwned>(place: &Value) -> Result<T, PullError> {
    T::deserialize(place).map_err(|_| PullError::CursorLost("our place in this account cannot be read"))
}

/// A page after which there are more.
fn more(items: Vec<Item>, failed: Vec<Failed>, next: Value) -> Page {
    Page { items, failed, next, more: true, note: None }
}

/// The last page.
fn last(items: Vec<Item>, failed: Vec<Failed>, next: Value) -> Page {
    Page { items, failed, next, more: false, note: None }
}

#[cfg(test)]
mod tests;
