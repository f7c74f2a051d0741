//! Makes documents of letters and their files. Lane `ingest` calls it with each page, in three steps:
//!
//! 1. `Mailbox::sort` decides about each letter and stores its files as blobs. No session is held while bytes are written.
//! 2. `remember` writes the documents.
//! 3. `Sorted::mark` adds, in the same transaction, that the letters are dealt with.
//!
//! A letter is decided about once. Known ones stay in or out whatever rules say later, until a person lets them in ([`super::left_out`]). Those of a
//! contact that was forgotten are out, and nothing is kept of them but their ids.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use connectors::pull::Item;
use connectors::pull::mailbox::MailboxSpec;
use domain::mail::rules::{Facts, Rules, SHIPPED};
use domain::mail::{Correspondent, LeftOut, Letter, Note, Place};
use domain::shown::clipped;
use domain::text::replace_nul;
use domain::{DocumentType, Fault, Record, SourceId, TenantId, normal_email};
use serde_json::{Map, Value, json};
use store::Tx;
use store::activities::{self, Arrival};
use store::crash::{self, Point};
use store::mail::channels::{self, Found, OnMailbox};
use store::mail::letters::{self, StoredFile};
use store::mail::processed::{self, FORGOTTEN, Known, Processed, Seen};
use store::memory::documents;
use store::written;

use super::{channel, files};
use crate::Env;
use crate::pull::Provider;

/// A letter is named by this and the provider's id.
pub(crate) const PREFIX: &str = "message:";
/// The recipients of a sent letter who are looked up among the contacts.
const MOST_LOOKED_UP: usize = 20;
/// The days for which the facts of letters are kept, so that rules can be tried on them.
pub(crate) const TRIED_DAYS: i64 = 30;

/// A mailbox, as its letters are sorted.
pub(crate) struct Mailbox<'a> {
    pub env: &'a Env,
    pub tenant_id: TenantId,
    pub source_id: SourceId,
    pub provider: Provider,
    pub spec: &'static MailboxSpec,
    /// The owner's address.
    pub account: &'a str,
}

/// The letters of a page, decided about.
#[derive(Default)]
pub(crate) struct Sorted {
    pub records: Vec<Record>,
    processed: Vec<Processed>,
    /// The ids of letters that are gone.
    gone: Vec<String>,
    seen: Vec<Seen>,
    /// The events that letters are on the mailbox's channels.
    arrivals: Vec<Arrival>,
    /// The letters that were looked up, and the number of results that were known of them.
    ids: Vec<String>,
    n_results: usize,
    /// Those of them that were forgotten.
    n_forgotten: usize,
    /// The contacts of the letters that are let in.
    contacts: BTreeSet<i64>,
}

/// The rows about the letters of a page.
struct Before {
    rules: Rules,
    known: HashMap<String, Known>,
    /// The names of those that have a document.
    documents: HashSet<String>,
    files: HashMap<String, Vec<StoredFile>>,
    contacts: HashMap<String, i64>,
    channels: Vec<OnMailbox>,
    /// The results that agents have for letters, by the letter's id.
    results: HashMap<String, Vec<Found>>,
}

impl Mailbox<'_> {
    /// Decides about the letters of a page, and makes records of those that are let in, of their files, and of what is gone. `gone` are names of
    /// letters that the provider no longer has; their own tombstones are the caller's.
    pub async fn sort(&self, items: Vec<Item>, gone: &[String]) -> Result<Sorted, Fault> {
        let items = newest(items);
        let before = self.look(&items, gone).await?;
        let n_results = before.results.values().map(Vec::len).sum();
        let names = items.iter().map(|item| &item.raw.external_id).chain(gone);
        let ids = names.map(|name| message_id(name).to_owned()).collect();
        let n_forgotten = before.known.values().filter(|known| known.is_forgotten()).count();
        let mut sorted = Sorted { n_results, n_forgotten, ids, ..Sorted::default() };
        for name in gone {
            sorted.is_gone(self.source_id, name, &before);
        }
        for Item { raw, title, text, letter, .. } in items {
            let letter = if raw.is_deleted { None } else { letter.or_else(|| stated(&raw.payload)) };
            let record = self.record(&raw.external_id, raw.document_type, text)?;
            match letter {
                Some(letter) => {
                    let record = Record {
                        title,
                        source_version: raw.source_updated_at.map(|at| at.timestamp_micros()),
                        raw_payload: Some(raw.payload),
                        source_created_at: raw.source_created_at.or(letter.received_at),
                        source_updated_at: raw.source_updated_at,
                        ..record
                    };
                    self.sort_one(record, *letter, &before, &mut sorted).await?;
                }
                None => {
                    sorted.is_gone(self.source_id, &raw.external_id, &before);
                    let source_updated_at = raw.source_updated_at;
                    sorted.records.push(Record { is_deleted: true, text: String::new(), source_updated_at, ..record });
                }
            }
        }
        crash::at(Point::MailFilesKept)?;
        Ok(sorted)
    }

    fn record(&self, external_id: &str, document_type: &str, text: String) -> Result<Record, Fault> {
        let document_type = document_type.parse().map_err(|odd: String| Fault::Malformed { what: odd })?;
        Ok(Record::new(self.source_id, external_id, document_type, text))
    }

    async fn sort_one(
        &self,
        record: Record,
        letter: Letter,
        before: &Before,
        sorted: &mut Sorted,
    ) -> Result<(), Fault> {
        let message_id = message_id(&record.external_id).to_owned();
        let received_at = letter.received_at.or(letter.sent_at).unwrap_or_else(|| self.env.clock.now());
        let contact_id = self.contact(&letter, before);
        let is_of_contact = letter.place != Place::Sent && contact_id.is_some();
        let facts = before.rules.facts(&letter, is_of_contact);
        let known = before.known.get(&message_id);
        let is_stored = before.documents.contains(&record.external_id);
        let is_new = known.map_or(!is_stored, |known| known.skip_reason.is_some());
        let skip_reason = match known {
            Some(known) if known.is_let_in => None,
            Some(known) => known.skip_reason.clone(),
            // It was let in when nobody wrote that down.
            None if is_stored => None,
            None => before.rules.verdict(&facts).map(str::to_owned),
        };
        if let Some(reason) = &skip_reason {
            metrics::counter!("tributary_letters_left_out_total", "rule" => counted(reason)).increment(1);
        }
        let (is_left_out, is_forgotten) = (skip_reason.is_some(), known.is_some_and(Known::is_forgotten));
        if !is_forgotten {
            sorted.see(&message_id, received_at, &facts, self.env.clock.now());
        }
        let head =
            |text: &str, chars| Some(replace_nul(&clipped(text, chars))).filter(|_| is_left_out && !is_forgotten);
        sorted.processed.push(Processed {
            skip_reason,
            received_at,
            sender: letter.from.as_ref().and_then(|from| head(&from.address, 300)),
            subject: letter.subject.as_deref().and_then(|subject| head(subject, 400)),
            message_id: message_id.clone(),
        });
        if is_left_out {
            return Ok(());
        }
        sorted.contacts.extend(contact_id);
        let metadata = self.metadata(&record, &message_id, &letter);
        let thread_id = Some(letter.thread_id.clone().unwrap_or_else(|| message_id.clone()));
        let (mut of_letter, mut attached) = (Vec::new(), Vec::new());
        for file in letter.files.iter().filter(|file| files::is_kept(file)) {
            let name = files::name(&message_id, file);
            let base = Record {
                thread_id: thread_id.clone(),
                contact_id,
                source_version: record.source_version,
                source_created_at: record.source_created_at,
                source_updated_at: record.source_updated_at,
                source_metadata: files::metadata(&metadata, file),
                ..self.record(&name, self.spec.attachment_type, String::new())?
            };
            // One whose bytes were not read this time stays as it is.
            let made = match &file.content {
                Some(content) => Some(files::record(self.env, self.tenant_id, base, file, content.clone()).await?),
                None => None,
            };
            of_letter.push(name);
            attached.extend(made.as_ref().and_then(|made| files::attached(made, file)));
            sorted.records.extend(made);
        }
        // One whose bytes could not be had is still there: what was read of it before stays.
        let unreadable = letter.files.iter().filter(|file| file.left_out == Some(LeftOut::Unreadable));
        of_letter.extend(unreadable.map(|file| files::name(&message_id, file)));
        let are_listed = !letter.notes.contains(&Note::FilesUnread);
        for stored in before.files.get(&record.external_id).into_iter().flatten().filter(|_| are_listed) {
            if !of_letter.contains(&stored.external_id) {
                sorted.records.push(tombstone(self.source_id, stored));
            }
        }
        if is_new {
            let named = (message_id.as_str(), &letter);
            for on in &before.channels {
                let arrival = channel::arrival(self.env, self.tenant_id, on, named, received_at, &attached).await?;
                sorted.arrivals.extend(arrival);
            }
        }
        let text = match before.results.get(&message_id) {
            Some(found) => channel::with_results(record.text, &letter, found),
            None => record.text,
        };
        let record = Record { text, ..record };
        sorted.records.push(Record { thread_id, contact_id, source_metadata: Value::Object(metadata), ..record });
        Ok(())
    }

    /// Reads what is stored about these letters, in one session.
    async fn look(&self, items: &[Item], gone: &[String]) -> Result<Before, Fault> {
        let names: Vec<&str> =
            items.iter().map(|item| item.raw.external_id.as_str()).chain(gone.iter().map(String::as_str)).collect();
        let ids: Vec<&str> = names.iter().map(|name| message_id(name)).collect();
        let people = items.iter().filter_map(|item| item.letter.as_deref()).flat_map(|letter| self.people(letter));
        let addresses: HashSet<String> = people.collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let (tenant_id, source_id) = (self.tenant_id, self.source_id);
        let mut conn = self.env.db.acquire().await?;
        let rules = super::rules::of(&mut conn, tenant_id, source_id).await?;
        let known = processed::known(&mut conn, tenant_id, source_id, &ids).await?;
        let named: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let documents = documents::types_of(&mut conn, tenant_id, source_id, &named).await?;
        let stored = letters::files_of(&mut conn, tenant_id, source_id, &names, self.spec.attachment_type).await?;
        let contacts = letters::contacts_of(&mut conn, tenant_id, &addresses).await?;
        let channels = channels::of_mailbox(&mut conn, tenant_id, source_id).await?;
        let found = channels::results(&mut conn, tenant_id, source_id, &ids).await?;
        drop(conn);
        let mut files: HashMap<String, Vec<StoredFile>> = HashMap::new();
        for file in stored {
            files.entry(file.letter.clone()).or_default().push(file);
        }
        let known = known.into_iter().map(|known| (known.message_id.clone(), known)).collect();
        let mut results: HashMap<String, Vec<Found>> = HashMap::new();
        for found in found {
            results.entry(found.event_key.clone()).or_default().push(found);
        }
        let documents = documents.into_iter().map(|known| known.external_id).collect();
        Ok(Before { rules, known, documents, files, contacts: contacts.into_iter().collect(), channels, results })
    }

    /// The addresses of those who may be the contact of a letter, the likeliest first: its sender, or those to whom the owner sent it.
    fn people(&self, letter: &Letter) -> Vec<String> {
        let owner = normal_email(self.account);
        let address =
            |person: &Correspondent| normal_email(&person.address).filter(|address| Some(address) != owner.as_ref());
        let is_sent = letter.place == Place::Sent
            || letter
                .from
                .as_ref()
                .is_some_and(|from| normal_email(&from.address).is_some_and(|from| Some(from) == owner));
        let (first, then): (Vec<_>, Vec<_>) = match is_sent {
            true => (letter.to.iter().collect(), letter.cc.iter().chain(&letter.bcc).collect()),
            false => (letter.from.iter().collect(), letter.reply_to.iter().collect()),
        };
        first.into_iter().chain(then).filter_map(address).take(MOST_LOOKED_UP).collect()
    }

    fn contact(&self, letter: &Letter, before: &Before) -> Option<i64> {
        self.people(letter).iter().find_map(|address| before.contacts.get(address).copied())
    }

    /// The metadata of a letter's document.
    fn metadata(&self, record: &Record, message_id: &str, letter: &Letter) -> Map<String, Value> {
        let shown = |people: &[Correspondent]| people.iter().map(Correspondent::shown).collect::<Vec<_>>();
        let n_files = letter.files.iter().filter(|file| files::is_kept(file)).count();
        let told = json!({
            "provider": self.provider.name,
            "message_id": message_id,
            "internet_message_id": letter.internet_message_id,
            "from": letter.from.as_ref().map(Correspondent::shown),
            "to": shown(&letter.to),
            "cc": shown(&letter.cc),
            "subject": letter.subject,
            "received_at": letter.received_at,
            "place": letter.place,
            "folders": letter.folders,
            "n_files": n_files,
        });
        let Value::Object(mut told) = told else { return Map::new() };
        // A hit of a search leads there.
        if let Some(url) = record.raw_payload.as_ref().and_then(|payload| (self.provider.link)(payload)) {
            told.insert("url".into(), url.into());
        }
        told
    }
}

impl Sorted {
    /// Keeps the contacts of the letters from going until the transaction ends. One that went since it was looked up is no contact any more.
    pub async fn hold(&self, tx: &mut Tx, tenant_id: TenantId) -> Result<(), Fault> {
        if self.contacts.is_empty() {
            return Ok(());
        }
        let ids: Vec<i64> = self.contacts.iter().copied().collect();
        match written::hold_contacts(tx, tenant_id, &ids).await?.len() == ids.len() {
            true => Ok(()),
            false => Err(Fault::Transient(anyhow::anyhow!("a contact of these letters was removed meanwhile"))),
        }
    }

    /// Adds to the transaction that writes the documents that their letters are dealt with.
    pub async fn mark(
        &self,
        tx: &mut Tx,
        at: Option<DateTime<Utc>>,
        tenant_id: TenantId,
        source_id: SourceId,
    ) -> Result<(), Fault> {
        crash::at(Point::MailRemembered)?;
        let ids: Vec<&str> = self.ids.iter().map(String::as_str).collect();
        let n_results = channels::results(tx, tenant_id, source_id, &ids).await?.len();
        if n_results != self.n_results {
            return Err(Fault::Transient(anyhow::anyhow!("an agent has found something in these letters meanwhile")));
        }
        if processed::count_forgotten(tx, tenant_id, source_id, &ids).await? != self.n_forgotten {
            return Err(Fault::Transient(anyhow::anyhow!("some of these letters were forgotten or let in meanwhile")));
        }
        if !self.arrivals.is_empty() {
            let arrivals: Vec<&Arrival> = self.arrivals.iter().collect();
            activities::insert_beside(tx, &arrivals).await?;
        }
        if !self.gone.is_empty() {
            let gone: Vec<&str> = self.gone.iter().map(String::as_str).collect();
            processed::unmark(tx, tenant_id, source_id, &gone).await?;
        }
        if !self.processed.is_empty() {
            processed::mark(tx, at, tenant_id, source_id, &self.processed).await?;
        }
        if !self.seen.is_empty() {
            processed::keep_facts(tx, tenant_id, source_id, &self.seen).await?;
        }
        Ok(())
    }

    /// A letter is gone, and its files with it.
    fn is_gone(&mut self, source_id: SourceId, name: &str, before: &Before) {
        let files = before.files.get(name).into_iter().flatten();
        self.records.extend(files.map(|file| tombstone(source_id, file)));
        self.gone.push(message_id(name).to_owned());
    }

    fn see(&mut self, message_id: &str, received_at: DateTime<Utc>, facts: &Facts, now: DateTime<Utc>) {
        if received_at < now - chrono::TimeDelta::days(TRIED_DAYS) {
            return;
        }
        if let Ok(facts) = serde_json::to_value(facts) {
            self.seen.push(Seen { message_id: message_id.to_owned(), received_at, facts });
        }
    }
}

/// The letter of a payload: sample data comes without one of its own.
fn stated(payload: &Value) -> Option<Box<Letter>> {
    Letter::from_payload(payload).map(Box::new)
}

/// The provider's id of a letter.
fn message_id(external_id: &str) -> &str {
    external_id.strip_prefix(PREFIX).unwrap_or(external_id)
}

/// The tombstones of a letter's files. None, if the document is no letter.
pub(crate) async fn tombstones_of_files(
    env: &Env,
    tenant_id: TenantId,
    source_id: SourceId,
    name: &str,
    document_type: &DocumentType,
) -> store::Result<Vec<Record>> {
    let DocumentType::Record { provider, .. } = document_type else { return Ok(Vec::new()) };
    let spec = env.providers.named(provider).ok().and_then(|provider| provider.mailbox.as_ref());
    let Some(spec) = spec.filter(|spec| spec.message_type == document_type.to_string()) else { return Ok(Vec::new()) };
    let stored =
        env.db.session(async |conn| letters::files_of(conn, tenant_id, source_id, &[name], spec.attachment_type).await);
    Ok(stored.await?.iter().map(|file| tombstone(source_id, file)).collect())
}

fn tombstone(source_id: SourceId, file: &StoredFile) -> Record {
    let StoredFile { external_id, document_type, .. } = file;
    Record { is_deleted: true, ..Record::new(source_id, external_id.clone(), document_type.clone(), "") }
}

/// The name by which a rule is counted: people give names to their own.
fn counted(rule: &str) -> &'static str {
    if rule == FORGOTTEN {
        return FORGOTTEN;
    }
    SHIPPED.iter().find(|shipped| shipped.name == rule).map_or("own", |shipped| shipped.name)
}

/// One item of each letter: the newest version, else the last that came.
fn newest(items: Vec<Item>) -> Vec<Item> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut newest: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        match places.get(&item.raw.external_id) {
            Some(place) => {
                let held = &mut newest[*place];
                let is_older = matches!((held.raw.source_updated_at, item.raw.source_updated_at), (Some(held), Some(came)) if held > came);
                if !is_older {
                    *held = item;
                }
            }
            None => {
                places.insert(item.raw.external_id.clone(), newest.len());
                newest.push(item);
            }
        }
    }
    newest
}
