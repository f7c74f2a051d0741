//! Gmail: mailboxes, their history and what their owners do, with the Pub/Sub topic that is told of it.

mod batch;
mod compose;
mod fake;
mod fixtures;
mod handle;
mod history;
mod list;
mod mcp;
mod pubsub;
mod rest;
mod search;
mod signer;
mod truth;

use std::collections::{BTreeMap, HashMap, VecDeque};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use self::history::Change;
use self::pubsub::Topic;

pub use self::fake::GMAIL;
pub use self::handle::Gmail;
pub use self::pubsub::{Delivery, Pubsub};
pub use self::signer::TokenFault;
pub use self::truth::GmailLetter;

/// Labels that Gmail makes itself.
pub(super) const SYSTEM: [&str; 13] = [
    "INBOX",
    "SENT",
    "DRAFT",
    "TRASH",
    "SPAM",
    "UNREAD",
    "STARRED",
    "IMPORTANT",
    "CHAT",
    "CATEGORY_PERSONAL",
    "CATEGORY_UPDATES",
    "CATEGORY_PROMOTIONS",
    "CATEGORY_SOCIAL",
];
const MINUTE: TimeDelta = TimeDelta::seconds(60);
/// Parts of a batch that are answered at the same time.
const AT_ONCE: usize = 25;

/// Every mailbox, by account, and the topic of the project.
pub(crate) struct Mailboxes {
    boxes: BTreeMap<String, Mailbox>,
    topic: Topic,
    /// Units of a minute, for each mailbox. None: as many as they like.
    units_a_minute: Option<u32>,
    /// Parts of a batch beyond this number are refused.
    at_once: usize,
}

impl Default for Mailboxes {
    fn default() -> Self {
        Self { boxes: BTreeMap::new(), topic: Topic::default(), units_a_minute: None, at_once: AT_ONCE }
    }
}

impl Mailboxes {
    /// The mailbox of an account, which comes into being when somebody looks.
    fn of(&mut self, account: &str) -> &mut Mailbox {
        self.boxes.entry(account.to_owned()).or_default()
    }
}

pub(super) struct Mailbox {
    messages: BTreeMap<String, Message>,
    /// The names of the owner's labels, by id.
    labels: BTreeMap<String, String>,
    changes: Vec<Change>,
    /// The number of the last change. Numbers have gaps.
    history_id: u64,
    /// A history that begins before this number is gone.
    oldest: u64,
    /// Changes after this number cannot be read yet.
    visible: Option<u64>,
    /// Messages that cannot be found, and how often.
    hidden: HashMap<String, u32>,
    watch: Option<Watch>,
    /// Units spent, by the time.
    spent: VecDeque<(DateTime<Utc>, u32)>,
    n_units: u64,
    n_made: u64,
    /// Parts of batches that are refused next, and with which status.
    refused_parts: VecDeque<u16>,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            messages: BTreeMap::new(),
            labels: BTreeMap::new(),
            changes: Vec::new(),
            history_id: 90_000,
            oldest: 1,
            visible: None,
            hidden: HashMap::new(),
            watch: None,
            spent: VecDeque::new(),
            n_units: 0,
            n_made: 0,
            refused_parts: VecDeque::new(),
        }
    }
}

#[derive(Clone)]
pub(super) struct Message {
    thread_id: String,
    labels: Vec<String>,
    snippet: String,
    history_id: u64,
    received_at: DateTime<Utc>,
    raw: Vec<u8>,
}

/// A promise to tell a topic.
#[derive(Clone)]
pub(super) struct Watch {
    topic: String,
    until: DateTime<Utc>,
}

/// A time as Pub/Sub writes it.
fn iso_micros(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

impl Mailbox {
    /// Spends units. False: there are none left in this minute.
    fn spend(&mut self, units: u32, most: Option<u32>, now: DateTime<Utc>) -> bool {
        while self.spent.front().is_some_and(|(at, _)| *at + MINUTE <= now) {
            self.spent.pop_front();
        }
        let spent: u32 = self.spent.iter().map(|(_, units)| units).sum();
        if most.is_some_and(|most| spent + units > most) {
            return false;
        }
        self.spent.push_back((now, units));
        self.n_units += u64::from(units);
        true
    }
}
