//! Mail as people read it: lists of letters, a conversation, one letter with its files and its people. Everything is read in the caller's own
//! transaction; only who an address belongs to is asked of the service.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use domain::mail::{Attachment, Correspondent, Letter, Place, clean};
use domain::text::has_nul;
use domain::{Caller, ClientId, ContactId, DocumentId, SourceId, TenantId, normal_email};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use store::contacts;
use store::mail::reading::{self, FileDocument, Filter, InThread, Known, Listed, Position, Stored, Wanted};
use store::memory::Document;
use store::sources::Source;
use uuid::Uuid;

use super::letters::PREFIX;
use crate::act::OrMissing as _;
use crate::documents::{self, WholeDocument};
use crate::{ActError, Env};

/// The letters of a conversation that are read; older ones are counted.
pub const MOST_IN_THREAD: i64 = 100;
/// The addresses of one client, or of one letter, that are looked at.
const MOST_ADDRESSES: usize = 100;
/// The pictures that are shown inside a letter.
const MOST_PICTURE_BYTES: u64 = 5_000_000;
/// The words of a letter in a list.
const SNIPPET_CHARS: usize = 300;

/// The letters that somebody asks for. Every field narrows it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub mailbox: Option<SourceId>,
    pub place: Option<Place>,
    /// The name of a folder or label, as its owner wrote it.
    pub folder: Option<String>,
    /// Part of a name or an address.
    pub person: Option<String>,
    pub contact: Option<ContactId>,
    pub client: Option<ClientId>,
    /// In the subject, the people or the text.
    pub text: Option<String>,
    pub has_files: bool,
    pub since: Option<DateTime<Utc>>,
    /// Before this time.
    pub until: Option<DateTime<Utc>>,
}

/// A letter as lists show it.
#[derive(Clone, Debug)]
pub struct Line {
    pub id: Uuid,
    pub source_id: Uuid,
    /// The mailbox.
    pub source_name: String,
    pub thread_id: Option<String>,
    pub head: Head,
    /// The beginning of what its sender wrote.
    pub snippet: String,
    pub is_pending: bool,
    /// When it came in.
    pub at: DateTime<Utc>,
}

/// The head of a letter, as its document's metadata has it.
#[derive(Clone, Debug, Default)]
pub struct Head {
    pub subject: Option<String>,
    pub from: Option<Correspondent>,
    pub to: Vec<Correspondent>,
    pub cc: Vec<Correspondent>,
    pub place: Place,
    pub folders: Vec<String>,
    pub n_files: i64,
}

/// A page of letters, the newest first.
#[derive(Clone, Debug)]
pub struct Page {
    pub letters: Vec<Line>,
    /// The place before which older ones follow.
    pub next: Option<Position>,
}

/// A conversation, the oldest letter first.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub source_id: Uuid,
    pub source_name: String,
    pub letters: Vec<Message>,
    /// There are older ones than those.
    pub is_cut: bool,
}

/// A letter of a conversation, without its HTML and its headers.
#[derive(Clone, Debug)]
pub struct Message {
    pub line: Line,
    pub letter: Letter,
}

/// A letter with everything that its page shows.
#[derive(Clone, Debug)]
pub struct WholeLetter {
    pub stored: Stored,
    /// Empty for one that is deleted: nothing but its tombstone is left.
    pub letter: Letter,
    pub files: Vec<File>,
    /// Those of its people who are known, by their addresses in their normal form.
    pub people: HashMap<String, Known>,
    /// The letters of its conversation, itself included, up to [`MOST_IN_THREAD`].
    pub n_in_thread: i64,
    /// The number of its chunks that have their vectors.
    pub n_embedded: usize,
}

impl WholeLetter {
    /// The letter's page at its provider.
    pub fn url(&self) -> Option<&str> {
        let url = self.stored.document.source_metadata.get("url").and_then(Value::as_str);
        url.filter(|url| url.starts_with("https://"))
    }
}

/// A file of a letter, and its document if it is kept.
#[derive(Clone, Debug)]
pub struct File {
    pub attachment: Attachment,
    pub document: Option<FileDocument>,
}

/// The caller's mailboxes, the oldest first.
pub async fn mailboxes(env: &Env, caller: &Caller) -> Result<Vec<Source>, ActError> {
    let mut sources = crate::sources::list(env, caller).await?;
    sources.retain(|source| is_mailbox(env, &source.provider));
    Ok(sources)
}

/// Whether a provider's accounts are mailboxes.
pub fn is_mailbox(env: &Env, provider: &str) -> bool {
    env.providers.named(provider).is_ok_and(|provider| provider.mailbox.is_some())
}

/// A page of the tenant's letters, the newest first.
pub async fn list(
    env: &Env,
    caller: &Caller,
    asked: &Asked,
    before: Option<Position>,
    limit: i64,
) -> Result<Page, ActError> {
    let words = [("folder", &asked.folder), ("person", &asked.person), ("q", &asked.text)];
    if let Some((name, _)) = words.iter().find(|(_, word)| word.as_deref().is_some_and(has_nul)) {
        return Err(ActError::invalid(format!("{name} has a NUL character")));
    }
    let trimmed =
        |word: &Option<String>| word.as_deref().map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned);
    let (folder, person, text) = (trimmed(&asked.folder), trimmed(&asked.person), trimmed(&asked.text));
    let loaded = env.db.read(caller, async |tx| {
        let addresses = match addresses_of(tx, caller, asked).await? {
            Some(addresses) => match reading::addressed(&addresses) {
                Some(pattern) => Some(pattern),
                None => return Ok((Vec::new(), None)), // nobody can be found by no address
            },
            None => None,
        };
        let filter = Filter {
            source_id: asked.mailbox,
            place: asked.place,
            folder: folder.as_deref(),
            person: person.as_deref(),
            addresses: addresses.as_deref(),
            text: text.as_deref(),
            has_files: asked.has_files,
            since: asked.since,
            until: asked.until,
        };
        let wanted = Wanted { filter, before, limit };
        let listed = reading::list(tx, caller.tenant_id, wanted).await?;
        let is_full = i64::try_from(listed.len()).is_ok_and(|n| n >= limit);
        let next = match listed.last() {
            Some(last) if is_full => Some(last.position()),
            // What was looked at is not all there is.
            _ if wanted.is_sifted() => reading::last_looked_at(tx, caller.tenant_id, wanted).await?,
            _ => None,
        };
        Ok((listed, next))
    });
    let (listed, next) = loaded.await?;
    Ok(Page { letters: listed.into_iter().map(Line::from).collect(), next })
}

/// The addresses by which a contact or a client is found in heads. None: neither was asked for.
async fn addresses_of(tx: &mut store::Tx, caller: &Caller, asked: &Asked) -> store::Result<Option<Vec<String>>> {
    let mut found: Option<Vec<String>> = None;
    if let Some(id) = asked.contact {
        let all = contacts::addresses(tx, caller.tenant_id, id).await?;
        found = Some(all.iter().filter_map(|address| normal_email(address)).collect());
    }
    if let Some(id) = asked.client {
        let limit = i64::try_from(MOST_ADDRESSES).unwrap_or(i64::MAX);
        let theirs = reading::client_addresses(tx, id, limit).await?;
        // Both are asked for: addresses of the contact that are the client's too.
        found = Some(match found {
            None => theirs,
            Some(of_contact) => of_contact.into_iter().filter(|address| is_among(address, &theirs)).collect(),
        });
    }
    Ok(found)
}

/// Whether an address, or its domain, is among these.
fn is_among(address: &str, addresses: &[String]) -> bool {
    let domain = address.rsplit_once('@').map(|(_, domain)| format!("@{domain}"));
    addresses.iter().any(|one| one == address || Some(one) == domain.as_ref())
}

/// The place of a letter in lists; an error if there is no such letter.
pub async fn position(env: &Env, caller: &Caller, id: DocumentId) -> Result<Position, ActError> {
    let found = env.db.read(caller, async |tx| reading::position(tx, caller.tenant_id, id.0).await).await?;
    found.or_missing("message")
}

/// The conversation that one of the caller's letters belongs to. A letter without one is alone in it.
pub async fn conversation(env: &Env, caller: &Caller, id: DocumentId) -> Result<Conversation, ActError> {
    let loaded = env.db.read(caller, async |tx| {
        let Some(stored) = reading::get(tx, id.0).await? else { return Ok(None) };
        let source_id = SourceId(stored.document.source_id);
        let letters = match &stored.thread_id {
            Some(thread) => reading::of_thread(tx, caller.tenant_id, source_id, thread, MOST_IN_THREAD + 1).await?,
            None => Vec::new(),
        };
        Ok(Some((stored, letters)))
    });
    let (stored, mut newest) = loaded.await?.or_missing("message")?;
    let is_cut = i64::try_from(newest.len()).is_ok_and(|n| n > MOST_IN_THREAD);
    newest.truncate(usize::try_from(MOST_IN_THREAD).unwrap_or(usize::MAX));
    let mut letters: Vec<Message> = newest.into_iter().rev().map(Message::from).collect();
    put_answers_last(&mut letters);
    let (source_id, source_name) = (stored.document.source_id, stored.document.source_name.clone());
    // Without a conversation, or deleted: the others are shown all the same.
    if letters.is_empty() && stored.document.deleted_at.is_none() {
        letters.push(Message::from(stored));
    }
    Ok(Conversation { source_id, source_name, letters, is_cut })
}

/// Puts letters of one second into the order of their answers: each after those that its head names.
fn put_answers_last(letters: &mut [Message]) {
    for run in letters.chunk_by_mut(|one, next| one.line.at.timestamp() == next.line.at.timestamp()) {
        for place in 0..run.len() {
            let rest = &run[place..];
            let answers = |one: &Message| {
                let ids = rest.iter().filter_map(|other| other.letter.internet_message_id.as_ref());
                ids.into_iter().any(|id| one.letter.references.contains(id))
            };
            let next = rest.iter().position(|one| !answers(one)).unwrap_or(0);
            run[place..=place + next].rotate_right(1);
        }
    }
}

/// One of the caller's letters, also one that is deleted.
pub async fn whole(env: &Env, caller: &Caller, id: DocumentId) -> Result<WholeLetter, ActError> {
    let loaded = env.db.read(caller, async |tx| {
        let Some(stored) = reading::get(tx, id.0).await? else { return Ok(None) };
        let source_id = SourceId(stored.document.source_id);
        let letter = letter_of(stored.document.raw_payload.as_ref());
        let names = names_of_files(&stored.document.external_id, &letter);
        let documents = match names.is_empty() {
            true => Vec::new(),
            false => reading::files(tx, source_id, &names).await?,
        };
        let n_in_thread = match &stored.thread_id {
            Some(thread) => reading::count_thread(tx, caller.tenant_id, source_id, thread, MOST_IN_THREAD).await?,
            None => 1,
        };
        Ok(Some((stored, letter, documents, n_in_thread)))
    });
    let (stored, letter, documents, n_in_thread) = loaded.await?.or_missing("message")?;
    let WholeDocument { n_embedded, .. } = documents::whole(env, caller, id, 0).await?;
    let mut by_name: HashMap<String, FileDocument> =
        documents.into_iter().map(|document| (document.external_id.clone(), document)).collect();
    let names = names_of_files(&stored.document.external_id, &letter);
    let files = letter.files.iter().zip(names);
    let files = files.map(|(file, name)| File { attachment: file.clone(), document: by_name.remove(&name) }).collect();
    let people = people(env, caller, &letter).await?;
    Ok(WholeLetter { stored, letter, files, people, n_in_thread, n_embedded })
}

/// The documents that came with a document in one message.
#[derive(Clone, Debug, Default)]
pub struct CameWith {
    /// The letter of a file.
    pub letter: Option<Named>,
    /// The files of a letter that are documents.
    pub files: Vec<Named>,
}

/// A document, and its subject or its name.
#[derive(Clone, Debug)]
pub struct Named {
    pub id: Uuid,
    pub name: Option<String>,
}

/// Finds the letter that a file came with, or the files of a letter; neither for other documents.
pub async fn came_with(env: &Env, caller: &Caller, document: &Document) -> Result<CameWith, ActError> {
    let source_id = SourceId(document.source_id);
    if document.external_id.starts_with(PREFIX) {
        let letter = letter_of(document.raw_payload.as_ref());
        let names = names_of_files(&document.external_id, &letter);
        if names.is_empty() {
            return Ok(CameWith::default());
        }
        let found = env.db.read(caller, async |tx| reading::files(tx, source_id, &names).await).await?;
        let files = letter.files.iter().zip(&names).filter_map(|(file, name)| {
            let document = found.iter().find(|document| document.external_id == *name && !document.is_deleted)?;
            Some(Named { id: document.id, name: file.name.clone() })
        });
        return Ok(CameWith { letter: None, files: files.collect() });
    }
    let Some(name) = document.external_id.strip_prefix(super::files::PREFIX) else { return Ok(CameWith::default()) };
    // Both the id of a message and the part of a file may have slashes.
    let letters: Vec<String> = name.match_indices('/').map(|(at, _)| format!("{PREFIX}{}", &name[..at])).collect();
    let found = env.db.read(caller, async |tx| reading::letter_named(tx, source_id, &letters).await).await?;
    Ok(CameWith { letter: found.map(|(id, name)| Named { id, name }), files: Vec::new() })
}

/// The HTML of one of the caller's letters, without anything that runs or that loads something; pictures that are part of the letter and kept are in
/// it. None: it has no HTML.
pub async fn html(env: &Env, caller: &Caller, id: DocumentId) -> Result<Option<String>, ActError> {
    let loaded = env.db.read(caller, async |tx| {
        let Some(stored) = reading::get(tx, id.0).await? else { return Ok(None) };
        let letter = letter_of(stored.document.raw_payload.as_ref());
        let names = names_of_files(&stored.document.external_id, &letter);
        let files = reading::files(tx, SourceId(stored.document.source_id), &names).await?;
        Ok(Some((letter, names, files)))
    });
    let (letter, names, files) = loaded.await?.or_missing("message")?;
    let Some(body) = &letter.html else { return Ok(None) };
    let mut pictures: HashMap<String, String> = HashMap::new();
    let mut room = MOST_PICTURE_BYTES;
    for (attachment, name) in letter.files.iter().zip(&names) {
        let key = files.iter().find(|file| file.external_id == *name).and_then(|file| file.blob_key.as_deref());
        let (Some(content_id), Some(key)) = (&attachment.content_id, key) else { continue };
        let is_picture = ["image/png", "image/jpeg"].contains(&attachment.media_type.as_str());
        if is_picture && attachment.size_bytes <= room {
            room -= attachment.size_bytes;
            let picture = picture(env, caller.tenant_id, &attachment.media_type, key).await?;
            pictures.extend(picture.map(|picture| (content_id.clone(), picture)));
        }
    }
    let named = |id: &str| pictures.get(&*percent_decode_str(id).decode_utf8_lossy()).cloned();
    Ok(Some(clean::cleaned(body, named)))
}

/// A stored picture as an address that needs no loading; none if it is missing.
async fn picture(env: &Env, tenant_id: TenantId, media_type: &str, key: &str) -> Result<Option<String>, ActError> {
    let Ok(key) = key.parse() else { return Ok(None) };
    let bytes = env.blobs.get(tenant_id, &key).await.map_err(ActError::Failed)?;
    Ok(bytes.map(|bytes| format!("data:{media_type};base64,{}", STANDARD.encode(bytes))))
}

/// Those of a letter's people who are known, by their addresses in their normal form.
async fn people(env: &Env, caller: &Caller, letter: &Letter) -> Result<HashMap<String, Known>, ActError> {
    let everyone = [&letter.to, &letter.cc, &letter.bcc, &letter.reply_to].into_iter().flatten();
    let all = letter.from.iter().chain(everyone).filter_map(|one| normal_email(&one.address));
    let mut seen = HashSet::new();
    let addresses: Vec<String> = all.filter(|address| seen.insert(address.clone())).take(MOST_ADDRESSES).collect();
    if addresses.is_empty() {
        return Ok(HashMap::new());
    }
    let known = env.db.session(async |conn| reading::people(conn, caller.tenant_id, &addresses).await).await?;
    Ok(known.into_iter().map(|known| (known.address.clone(), known)).collect())
}

/// The names of a letter's files at their source, in the order of the files.
fn names_of_files(external_id: &str, letter: &Letter) -> Vec<String> {
    let message_id = external_id.strip_prefix(PREFIX).unwrap_or(external_id);
    letter.files.iter().map(|file| super::files::name(message_id, file)).collect()
}

fn letter_of(payload: Option<&Value>) -> Letter {
    payload.and_then(Letter::from_payload).unwrap_or_default()
}

impl From<Listed> for Line {
    fn from(listed: Listed) -> Self {
        Self {
            is_pending: listed.is_pending(),
            snippet: snippet(&listed.text),
            head: Head::new(listed.title, &listed.source_metadata),
            id: listed.id,
            source_id: listed.source_id,
            source_name: listed.source_name,
            thread_id: listed.thread_id,
            at: listed.at,
        }
    }
}

impl From<InThread> for Message {
    fn from(InThread { listed, payload }: InThread) -> Self {
        Self { line: Line::from(listed), letter: letter_of(payload.as_ref()) }
    }
}

impl From<Stored> for Message {
    fn from(stored: Stored) -> Self {
        let document = stored.document;
        let line = Line {
            is_pending: document.is_pending(),
            snippet: snippet(&document.text),
            head: Head::new(document.title, &document.source_metadata),
            id: document.id,
            source_id: document.source_id,
            source_name: document.source_name,
            thread_id: stored.thread_id,
            at: stored.at,
        };
        Self { line, letter: letter_of(document.raw_payload.as_ref()) }
    }
}

impl Head {
    fn new(subject: Option<String>, metadata: &Value) -> Self {
        let folders = metadata["folders"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Self {
            subject: subject.filter(|subject| !subject.trim().is_empty()),
            from: correspondents(&metadata["from"]).into_iter().next(),
            to: correspondents(&metadata["to"]),
            cc: correspondents(&metadata["cc"]),
            place: serde_json::from_value(metadata["place"].clone()).unwrap_or_default(),
            folders: folders.map(str::to_owned).collect(),
            n_files: metadata["n_files"].as_i64().unwrap_or_default(),
        }
    }
}

/// The people of a field of the metadata: texts such as `Ann <ann@acme.test>`, or names with addresses; one or several.
fn correspondents(value: &Value) -> Vec<Correspondent> {
    match value {
        Value::Array(all) => all.iter().flat_map(correspondents).collect(),
        Value::String(text) if !text.trim().is_empty() => {
            let read = text.trim().strip_suffix('>').and_then(|text| text.rsplit_once('<'));
            let (name, address) = read.unwrap_or(("", text));
            let name = Some(name.trim().trim_matches('"').to_owned()).filter(|name| !name.is_empty());
            vec![Correspondent { name, address: address.trim().to_owned() }]
        }
        Value::Object(_) => serde_json::from_value(value.clone()).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The beginning of the sender's own words: what follows the head lines of a document's text.
fn snippet(text: &str) -> String {
    let is_head = ["From: ", "To: ", "Cc: ", "Date: "].iter().any(|name| text.starts_with(name));
    let words = match is_head {
        true => text.split_once("\n\n").map_or("", |(_, words)| words),
        false => text,
    };
    let words: Vec<&str> = words.split_whitespace().take(SNIPPET_CHARS / 2).collect();
    words.join(" ").chars().take(SNIPPET_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_snippet_is_what_the_sender_wrote() {
        for (text, expected) in [
            (
                "From: Ann <ann@acme.test>\nTo: Bob\nDate: 2026-11-17 09:30 UTC\n\nDear Bob,\n\nthe  parcel\nis late.",
                "Dear Bob, the parcel is late.",
            ),
            ("From: Ann <ann@acme.test>", ""),
            ("Nobody wrote this.\n\nReally.", "Nobody wrote this. Really."),
            ("", ""),
        ] {
            assert_eq!(snippet(text), expected, "of {text:?}");
        }
        assert_eq!(snippet(&"é".repeat(1_000)).chars().count(), SNIPPET_CHARS);
    }

    #[test]
    fn people_of_the_metadata_are_read_as_they_were_written() {
        let of = |value| correspondents(&value).iter().map(Correspondent::shown).collect::<Vec<_>>();
        assert_eq!(of(json!("\"Lark, Ann\" <ann@acme.test>")), ["Lark, Ann <ann@acme.test>"]);
        assert_eq!(
            of(json!(["ann@acme.test", { "name": null, "address": "bob@mill.test" }])),
            ["ann@acme.test", "bob@mill.test"]
        );
        assert_eq!(of(json!({ "name": "Ann", "address": "ann@acme.test" })), ["Ann <ann@acme.test>"]);
        assert_eq!((of(json!(null)), of(json!(" ")), of(json!(7))), (vec![], vec![], vec![]));
    }

    #[test]
    fn answers_of_the_same_second_follow_what_they_answer() {
        let message = |id: &str, secs: i64, references: &[&str]| Message {
            line: Line {
                id: Uuid::nil(),
                source_id: Uuid::nil(),
                source_name: String::new(),
                thread_id: None,
                head: Head::default(),
                snippet: String::new(),
                is_pending: false,
                at: DateTime::from_timestamp(secs, 0).expect("a time"),
            },
            letter: Letter {
                internet_message_id: Some(id.to_owned()),
                references: references.iter().map(|id| (*id).to_owned()).collect(),
                ..Letter::default()
            },
        };
        let mut letters = [
            message("before", 1, &["late"]),
            message("question", 2, &[]),
            message("thanks", 2, &["question", "answer"]),
            message("answer", 2, &["question"]),
            message("late", 3, &[]),
            message("this", 4, &["that"]),
            message("that", 4, &["this"]),
        ];
        put_answers_last(&mut letters);
        let ids: Vec<&str> = letters.iter().filter_map(|one| one.letter.internet_message_id.as_deref()).collect();
        assert_eq!(ids, ["before", "question", "answer", "thanks", "late", "this", "that"]);
    }

    #[test]
    fn files_are_named_after_their_letter() {
        let file = Attachment {
            part: "2".into(),
            name: None,
            media_type: "application/pdf".into(),
            size_bytes: 1,
            content_id: None,
            is_inline: false,
            content: None,
            left_out: None,
        };
        let letter = Letter { files: vec![file], ..Letter::default() };
        assert_eq!(names_of_files("message:AAQk:x=", &letter), ["attachment:AAQk:x=/2"]);
    }

    #[test]
    fn a_contact_of_a_client_is_found_by_the_addresses_of_both() {
        let theirs = ["ann@acme.test".to_owned(), "@mill.test".to_owned()];
        assert!(is_among("ann@acme.test", &theirs) && is_among("bob@mill.test", &theirs));
        assert!(!is_among("bob@acme.test", &theirs) && !is_among("bob@sawmill.test", &theirs));
    }
}
