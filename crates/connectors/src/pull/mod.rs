//! Accounts at providers, read page by page. A connector turns a provider's answers into [`Item`]s and its position into a value that the
//! caller keeps: it is stored in the transaction that stores the page, so that a crash reads again and never skips.
//!
//! Each provider has a folder with a description, [`ProviderSpec`], and [`ALL`] lists them. Provider words stop there: only records, facts of
//! clients and [`PullError`]s leave, and the errors name neither a token nor anything that a record says.

pub mod clients;
pub mod complaint;
pub mod drive;
mod fixtures;
pub mod gmail;
mod google;
mod http;
pub mod hubspot;
mod listing;
pub mod mailbox;
pub mod mcp;
pub mod oauth;
pub mod outlook;
pub mod quickbooks;
pub mod record;
pub mod records;
pub mod settings;
pub mod spec;
pub mod trail;

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Secret;
use domain::mail::{Letter, Place};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::clients::{ClientFacts, Told, client_facts, rolled_up};
pub use self::fixtures::fixtures;
pub use self::http::{Api, ApiAnswer, Bounds, Refused};
pub use self::mcp::mcp;
pub use self::settings::{Setting, Settings};
pub use self::spec::{Provider, ProviderSpec};

/// Every provider that this program reads, in the order in which people see them. A new provider adds its folder, its `mod` line above and its
/// description here.
pub static ALL: &[Provider] = &[&hubspot::SPEC, &drive::SPEC, &quickbooks::SPEC, &gmail::SPEC, &outlook::SPEC];

/// The time that a delta reaches back before its starting moment: a record that changed just then may not have been in the provider's
/// index.
const OVERLAP: TimeDelta = TimeDelta::minutes(5);

/// One account, as a request to its provider needs it.
pub struct Account<'a> {
    /// The bearer, good now.
    pub token: &'a Secret,
    /// The provider's name for it, such as a number or an e-mail address.
    pub account: &'a str,
    /// Called before every request.
    pub pace: &'a dyn Pace,
    /// The places of a mailbox that are read. A letter anywhere else is told as deleted. Accounts that are no mailboxes ignore it.
    pub places: &'a [Place],
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

/// One record as it came, by any transport.
#[derive(Clone, Debug, PartialEq)]
pub struct RawItem {
    /// `<object>:<provider's id>`.
    pub external_id: String,
    /// One of the provider's [`ProviderSpec::document_types`].
    pub document_type: &'static str,
    /// The record as the provider spells it; a file's text is under `text`.
    pub payload: Value,
    pub source_created_at: Option<DateTime<Utc>>,
    pub source_updated_at: Option<DateTime<Utc>>,
    /// The provider deleted it; the payload says nothing then.
    pub is_deleted: bool,
}

/// A record as memory takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub raw: RawItem,
    pub title: Option<String>,
    /// Every mapped field in words, in an order of ours, so that the same record gives the same text by every transport.
    pub text: String,
    /// External ids of the records that this one says something about, itself included where it is a client.
    pub mentions: Vec<String>,
    /// The record is a letter of a mailbox. Its files become documents of their own, by rules of the caller's.
    pub letter: Option<Box<Letter>>,
    /// The record is a file, whose bytes are fetched apart ([`Connector::download`]).
    pub file: Option<RemoteFile>,
}

/// A file as its provider tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteFile {
    pub name: Option<String>,
    pub media_type: String,
    pub size_bytes: Option<u64>,
    /// The hash of its bytes in hex, if the provider tells it.
    pub sha256: Option<String>,
    /// The blob that has its bytes, once they are stored.
    pub blob_key: Option<String>,
}

/// The answer to a wish for the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Download {
    Bytes(Bytes),
    /// The file is gone meanwhile.
    Gone,
    /// It cannot be had, for this reason. A second request would have the same answer.
    Refused(String),
}

/// A record that could not be read, and stays behind without holding up the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    /// Its external id, else `<object>:?<n>`.
    pub external_id: String,
    /// The reason, in our own words.
    pub reason: String,
    /// The record, as far as it is JSON.
    pub payload: Value,
}

/// Whether its provider can be asked for a record that could not be read. A record without an id is named after its content
/// (`contact:?1a2b3c4d`), and an answer that could not be read `answer`: only the next full pass meets those again.
pub fn is_named(external_id: &str) -> bool {
    external_id.split_once(':').is_some_and(|(_, id)| !id.is_empty() && !id.starts_with('?'))
}

/// One page, and where the next one begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub items: Vec<Item>,
    pub failed: Vec<Failed>,
    /// With `more`: where to go on. Without: the cursor from which the next delta starts; null after a full pass whose cursor was taken before
    /// it ([`Connector::cursor`]).
    pub next: Value,
    pub more: bool,
    /// A message for a person, such as that a first sync was capped.
    pub note: Option<String>,
    /// On the last page of a full pass over a mailbox: the part that it has read.
    pub reach: Reach,
}

/// The part of a mailbox that a pass over it has read. A first sync may be capped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    All,
    /// Every letter that came in from then on, and not every one from before.
    From(DateTime<Utc>),
    /// Some letters, and nothing can be said about which of those that came in before the pass.
    Part,
}

/// The reasons why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    #[error("{who} asked us to wait {} s", retry_after.as_secs())]
    RateLimited { who: &'static str, retry_after: Duration },
    /// The token is not good (401).
    #[error("{who} refused the token")]
    Unauthorized { who: &'static str },
    /// Refused with a good token (403): a scope or a permission is missing. `code` is the provider's, never one of its sentences.
    #[error("{who} refused what we asked for ({code})")]
    Forbidden { who: &'static str, code: String },
    /// The same may succeed later: 5xx, a broken connection, too slow.
    #[error("{0}")]
    Passing(String),
    /// Not the provider: our own database could not say whether it is our turn.
    #[error("{0}")]
    Ours(String),
    /// An answer that is not the provider's API's: garbage, HTML, cut off, another shape. `raw` is its beginning, for a person.
    #[error("{what}")]
    Unreadable { what: String, raw: String },
    /// The provider no longer knows our position: everything has to be read again.
    #[error("{0}")]
    CursorLost(&'static str),
}

/// Records, and those that could not be read.
pub type Found = (Vec<Item>, Vec<Failed>);

/// Reads the accounts of one provider. `place` is the `next` of the page before; none at the beginning.
pub trait Connector: Send + Sync {
    /// The document types that a full pass reads all of: a record that it did not meet, and that `find` does not find, is gone.
    fn document_types(&self) -> &'static [&'static str];

    /// The cursor of a delta that tells of every change after this moment. It is taken before the first page of a full pass. None: this
    /// transport knows no changes, and every sync is a full pass.
    fn cursor<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>>;

    /// One page of everything. `is_first`: caps on a first sync apply.
    fn full<'a>(
        &'a self,
        account: &'a Account<'a>,
        place: Option<&'a Value>,
        is_first: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>>;

    /// One page of the changes since `cursor`: one that [`Connector::cursor`] or the last page of a delta gave.
    fn delta<'a>(
        &'a self,
        account: &'a Account<'a>,
        cursor: &'a Value,
        place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>>;

    /// The largest number of records that [`Connector::find`] is asked for.
    fn find_max(&self) -> usize {
        100
    }

    /// These records as they are now, in no order. A record that is missing in the answer is gone at the provider.
    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>>;

    /// The bytes of a record that is a file.
    fn download<'a>(
        &'a self,
        _account: &'a Account<'a>,
        _external_id: &'a str,
    ) -> BoxFuture<'a, Result<Download, PullError>> {
        Box::pin(async { Ok(Download::Refused("files are not fetched this way".into())) })
    }

    /// The account that the token opens: its [`Account::account`] from then on, and its name for a person.
    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>>;
}

/// An account, as its provider knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub account: String,
    pub name: String,
}

/// Reads a position or a cursor that a page gave before.
pub fn read_place<T: DeserializeOwned>(place: &Value) -> Result<T, PullError> {
    T::deserialize(place).map_err(|_| PullError::CursorLost("our place in this account cannot be read"))
}

/// A page after which there are more.
pub fn more(items: Vec<Item>, failed: Vec<Failed>, next: Value) -> Page {
    Page { items, failed, next, more: true, note: None, reach: Reach::All }
}

/// The last page.
pub fn last(items: Vec<Item>, failed: Vec<Failed>, next: Value) -> Page {
    Page { items, failed, next, more: false, note: None, reach: Reach::All }
}

#[cfg(test)]
mod tests;
