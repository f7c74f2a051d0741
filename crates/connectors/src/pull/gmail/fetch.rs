//! Fetches messages with their bytes, ten at a time. A page stops when it has enough for one commit.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::Value;

use super::wire::{Labels, Message};
use super::{Gmail, USER, batch, map};
use crate::pull::http::{Bounds, Refused};
use crate::pull::{Account, Failed, Item, PullError, record};

/// Parts of a batch are answered at the same time, and Gmail refuses some of them when there are more.
pub(super) const AT_ONCE: usize = 10;
/// The cost of one message, in whatever form.
const GET: u32 = 20;
/// A page is one commit or a few.
const PAGE_MESSAGES: usize = 100;
const PAGE_BYTES: usize = 32 * 1024 * 1024;
const BATCH: Bounds =
    Bounds { total: Duration::from_secs(120), idle: Duration::from_secs(20), bytes: 64 * 1024 * 1024 };
/// Gmail takes in 50 MB at most, which base64 makes a third longer.
const SINGLE: Bounds =
    Bounds { total: Duration::from_secs(120), idle: Duration::from_secs(20), bytes: 72 * 1024 * 1024 };

/// One message, as far as it could be read.
pub(super) enum Got {
    Message(Box<Message>),
    /// It is gone, perhaps since it was listed.
    Gone,
    Failed(Failed),
}

/// The messages of a page that were read this time.
#[derive(Default)]
pub(super) struct Taken {
    pub items: Vec<Item>,
    pub failed: Vec<Failed>,
    /// All messages of the page that are done, these and earlier ones.
    pub done: Vec<String>,
    /// Those that were not there.
    pub gone: Vec<String>,
    pub is_whole: bool,
}

/// The names of the labels that the mailbox's owner made. They are asked for once a page, if at all.
#[derive(Default)]
pub(super) struct Names(Option<HashMap<String, String>>);

impl Gmail {
    /// Reads these messages, except those in `done`. What nobody reads and what is gone are told as deleted.
    pub(super) async fn take(
        &self,
        account: &Account<'_>,
        ids: &[String],
        done: Vec<String>,
    ) -> Result<Taken, PullError> {
        let known: HashSet<&String> = done.iter().collect();
        let ids: Vec<String> = ids.iter().filter(|id| !known.contains(id)).cloned().collect();
        let (mut taken, mut names) = (Taken { done: done.clone(), ..Taken::default() }, Names::default());
        let mut n_bytes = 0;
        for ids in ids.chunks(AT_ONCE) {
            if n_bytes > PAGE_BYTES || taken.done.len() - done.len() >= PAGE_MESSAGES {
                return Ok(taken);
            }
            let got = match self.get_within(account, ids, "raw", PAGE_BYTES).await {
                Ok(got) => got,
                // What was read so far is kept. The next page meets the same trouble, if it lasts.
                Err(_) if taken.done.len() > done.len() => return Ok(taken),
                Err(error) => return Err(error),
            };
            let is_cut = got.len() < ids.len();
            for (id, got) in got {
                match got {
                    Got::Message(message) => {
                        n_bytes += message.raw.as_ref().map_or(0, String::len);
                        match self.item(account, &message, &mut names).await? {
                            Ok(item) => taken.items.push(item),
                            Err(behind) => taken.failed.push(behind),
                        }
                    }
                    Got::Gone => {
                        taken.items.push(map::tombstone(&id));
                        taken.gone.push(id.clone());
                    }
                    Got::Failed(behind) => taken.failed.push(behind),
                }
                taken.done.push(id);
            }
            if is_cut {
                return Ok(taken);
            }
        }
        taken.is_whole = true;
        Ok(taken)
    }

    /// The item of a message: a letter, or a tombstone if it lies where nobody reads.
    pub(super) async fn item(
        &self,
        account: &Account<'_>,
        message: &Message,
        names: &mut Names,
    ) -> Result<Result<Item, Failed>, PullError> {
        if !map::is_read(&message.label_ids, account.places) {
            return Ok(Ok(map::tombstone(&message.id)));
        }
        if message.label_ids.iter().any(|label| map::is_owners(label)) && names.0.is_none() {
            names.0 = Some(self.labels(account).await?);
        }
        let name = |label: &str| names.0.as_ref()?.get(label).cloned();
        let letter = map::letter(message, map::folders(&message.label_ids, name));
        let behind = |reason: &str| record::failed(map::OBJECT, Some(&message.id.as_str().into()), reason, Value::Null);
        Ok(letter.map(|letter| map::of_letter(&message.id, letter)).map_err(behind))
    }

    async fn labels(&self, account: &Account<'_>) -> Result<HashMap<String, String>, PullError> {
        self.turn(account, 1).await?;
        let labels: Labels = self.api.get(account, &[], &format!("{USER}/labels"), &[]).await?.body;
        Ok(labels.labels.0.into_iter().map(|label| (label.id, label.name)).collect())
    }

    /// Each of these messages in this format, in their order. A part of a batch that says no for now is asked for once more by itself.
    pub(super) async fn get(
        &self,
        account: &Account<'_>,
        ids: &[String],
        format: &str,
    ) -> Result<Vec<(String, Got)>, PullError> {
        self.get_within(account, ids, format, usize::MAX).await
    }

    /// The same; where messages are asked for by themselves, none follows after so many bytes. At least one is answered.
    async fn get_within(
        &self,
        account: &Account<'_>,
        ids: &[String],
        format: &str,
        most_bytes: usize,
    ) -> Result<Vec<(String, Got)>, PullError> {
        let mut got: HashMap<usize, Got> = HashMap::new();
        if ids.len() > 1 {
            self.turn(account, GET * u32::try_from(ids.len()).unwrap_or(u32::MAX)).await?;
            let paths: Vec<String> = ids.iter().map(|id| path(id, format)).collect();
            let (content_type, body) = batch::asking(&paths);
            match self.api.send_as(account, &[], "/batch/gmail/v1", (&content_type, body), BATCH).await {
                Ok((content_type, body)) => {
                    let Some(parts) = batch::parts(&content_type.unwrap_or_default(), &body) else {
                        return Err(self.api.unreadable("an answer of another form", &body, account.token));
                    };
                    for part in parts.into_iter().filter(|part| part.number < ids.len()) {
                        let read = match part.status {
                            200..300 => Ok(read(&ids[part.number], part.body)),
                            status => self.meaning(
                                &ids[part.number],
                                self.api.refused(account, status, &part.headers, part.body),
                            ),
                        };
                        match read {
                            Ok(message) => drop(got.insert(part.number, message)),
                            Err(PullError::RateLimited { .. } | PullError::Passing(_)) => {}
                            Err(error) => return Err(error),
                        }
                    }
                }
                // Ten at once may be too much where one is not.
                Err(Refused::TooLarge { .. }) => {}
                Err(refused) => return Err(refused.into()),
            }
        }
        let mut all = Vec::with_capacity(ids.len());
        let mut n_bytes = 0;
        for (number, id) in ids.iter().enumerate() {
            let message = match got.remove(&number) {
                Some(message) => message,
                None if n_bytes > most_bytes => break,
                None => self.one(account, id, format).await?,
            };
            if let Got::Message(message) = &message {
                n_bytes += message.raw.as_ref().map_or(0, String::len);
            }
            all.push((id.clone(), message));
        }
        Ok(all)
    }

    async fn one(&self, account: &Account<'_>, id: &str, format: &str) -> Result<Got, PullError> {
        self.turn(account, GET).await?;
        let query = [("format", format)];
        match self.api.download(account, &[], &format!("{USER}/messages/{id}"), &query, SINGLE).await {
            Ok(body) => Ok(read(id, &body)),
            Err(Refused::TooLarge { .. }) => Ok(Got::Failed(behind(id, "it is larger than 50 MB"))),
            Err(refused) => self.meaning(id, refused),
        }
    }

    /// The meaning of a refusal for one message: it is gone, or it stays behind, or nothing can be had.
    fn meaning(&self, id: &str, refused: Refused) -> Result<Got, PullError> {
        match refused {
            Refused::Lasting { status: 404 | 410, .. } => Ok(Got::Gone),
            Refused::Lasting { status: status @ (400 | 405..), code, .. }
                if code.as_deref() != Some("failedPrecondition") =>
            {
                let code = code.unwrap_or_else(|| format!("http_{status}"));
                Ok(Got::Failed(behind(id, format!("{} does not give it ({code})", self.api.who()))))
            }
            refused => Err(refused.into()),
        }
    }
}

fn path(id: &str, format: &str) -> String {
    format!("{USER}/messages/{id}?format={format}")
}

fn read(id: &str, body: &[u8]) -> Got {
    let parsed: Result<Value, _> = serde_json::from_slice(body);
    match parsed.ok().and_then(|message| Message::deserialize(message).ok()) {
        // It is the message that was asked for, whatever id it has.
        Some(message) if message.id == id => Got::Message(Box::new(message)),
        _ => Got::Failed(behind(id, "it does not parse")),
    }
}

fn behind(id: &str, reason: impl Into<String>) -> Failed {
    record::failed(map::OBJECT, Some(&id.into()), reason, Value::Null)
}
