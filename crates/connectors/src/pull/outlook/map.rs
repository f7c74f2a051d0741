//! Reads a message of Graph's into a letter.

use domain::mail::body::{from_html, split_as};
use domain::mail::{Attachment, Correspondent, LeftOut, Letter, Note, Place, files};
use domain::text::replace_nul_in;
use serde::Deserialize as _;
use serde_json::Value;

use super::folders::{Folder, Folders, WELL_KNOWN};
use super::wire::File;
use crate::pull::record::{self, Fields};
use crate::pull::{Failed, Item, RawItem};

pub(super) const MESSAGE: &str = "outlook.message";
pub(super) const ATTACHMENT: &str = "outlook.attachment";
pub(super) const OBJECT: &str = "message";

/// The properties of a message to ask for. The headers come only when they are named.
pub(super) const SELECT: &str = "id,conversationId,internetMessageId,parentFolderId,subject,from,sender,toRecipients,ccRecipients,\
bccRecipients,replyTo,receivedDateTime,sentDateTime,lastModifiedDateTime,hasAttachments,isDraft,body,internetMessageHeaders";

/// Properties that say how a message is kept, not what it says. A change of these alone brings nothing new.
const STATE: [&str; 10] = [
    "id",
    "isRead",
    "parentFolderId",
    "flag",
    "categories",
    "importance",
    "inferenceClassification",
    "lastModifiedDateTime",
    "changeKey",
    "isReadReceiptRequested",
];

/// The same limits as for the text and the HTML of any other letter.
const TEXT_MAX_BYTES: usize = 1_000_000;
const HTML_MAX_BYTES: usize = 2 << 20;
const HEADER_MAX_CHARS: usize = 2_000;
const HEADERS_MAX: usize = 500;

/// One message, read, without its files.
pub(super) struct Message {
    pub id: String,
    pub folder_id: Option<String>,
    pub letter: Letter,
    pub changed_at: Option<chrono::DateTime<chrono::Utc>>,
    pub has_files: bool,
}

/// The parts of a change in a delta that decide what is done with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The message left the folder, in whatever way.
    Removed,
    /// All of it came.
    Whole,
    /// Some of its properties came: the others have to be asked for.
    Part,
    /// It was read, flagged or sorted.
    State,
}

pub(super) fn change(message: &Value) -> Change {
    let Some(fields) = message.as_object() else { return Change::Part };
    let has = |key: &str| fields.contains_key(key);
    if has("@removed") {
        return Change::Removed;
    }
    if ["receivedDateTime", "parentFolderId", "body", "isDraft", "hasAttachments", "toRecipients"]
        .iter()
        .all(|key| has(key))
    {
        return Change::Whole;
    }
    let own = fields.keys().filter(|key| !key.starts_with('@'));
    let is_state = has("isRead") && own.clone().all(|key| STATE.contains(&key.as_str()));
    if is_state { Change::State } else { Change::Part }
}

/// Reads a message. Its folder is looked up in `folders`, and is `here` if that does not know it.
pub(super) fn message(mut value: Value, folders: &Folders, here: Option<&Folder>) -> Result<Message, Failed> {
    replace_nul_in(&mut value);
    match read(&value, folders, here) {
        Ok(message) => Ok(message),
        Err(reason) => Err(record::failed(OBJECT, value.get("id").cloned().as_ref(), reason, value)),
    }
}

fn read(value: &Value, folders: &Folders, here: Option<&Folder>) -> Result<Message, String> {
    let fields = record::object(value)?;
    let id = record::id(fields, "id")?;
    let is = |key: &str| fields.get(key).and_then(Value::as_bool) == Some(true);
    let folder_id = fields.get("parentFolderId").and_then(Value::as_str);
    let folder = folder_id.and_then(|id| folders.get(id)).or(here);
    let headers = headers(fields);
    let body = record::part(fields, "body")?;
    let content = body.and_then(|body| body.get("content")).and_then(Value::as_str).unwrap_or_default();
    let is_html = body
        .and_then(|body| body.get("contentType"))
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.eq_ignore_ascii_case("html"));
    let subject = record::text(fields, "subject")?.map(|subject| subject.trim().to_owned());
    let plain = if is_html { from_html(content) } else { content.to_owned() };
    let words = split_as(subject.as_deref(), &plain[..plain.floor_char_boundary(TEXT_MAX_BYTES)]);
    let mut notes = notes(fields, &headers);
    if plain.len() > TEXT_MAX_BYTES || content.len() > HTML_MAX_BYTES {
        notes.push(Note::Cut);
    }
    let html = &content[..content.floor_char_boundary(HTML_MAX_BYTES)];
    let mut letter = Letter {
        thread_id: record::text(fields, "conversationId")?,
        internet_message_id: record::text(fields, "internetMessageId")?.map(|id| bare(&id)),
        references: references(&headers),
        from: one(fields, "from").or_else(|| one(fields, "sender")),
        reply_to: people(fields, "replyTo"),
        to: people(fields, "toRecipients"),
        cc: people(fields, "ccRecipients"),
        bcc: people(fields, "bccRecipients"),
        subject,
        sent_at: record::time(fields.get("sentDateTime")),
        received_at: record::time(fields.get("receivedDateTime")),
        place: if is("isDraft") { Place::Drafts } else { folder.map_or(Place::Other, |folder| folder.place) },
        folders: folder.map(|folder| folder.name.clone()).into_iter().collect(),
        text: words.text,
        quoted: words.quoted,
        signature: words.signature,
        html: (is_html && !content.trim().is_empty()).then(|| html.to_owned()),
        notes,
        headers,
        ..Letter::default()
    };
    let files = fields.get("attachments").and_then(Value::as_array);
    if let Some(files) = files {
        letter.files = files.iter().filter_map(|file| file_of(File::deserialize(file).ok()?)).collect();
    }
    Ok(Message {
        id,
        folder_id: folder_id.map(str::to_owned),
        letter,
        changed_at: record::time(fields.get("lastModifiedDateTime")),
        // Graph does not count what stands inside the text.
        has_files: (is("hasAttachments") || content.contains("cid:")) && files.is_none(),
    })
}

impl Message {
    pub fn external_id(&self) -> String {
        external_id(&self.id)
    }

    /// Makes of it what memory takes: a letter, or its tombstone where it lies in a place that is not read.
    pub fn item(self, places: &[Place]) -> Item {
        if !places.contains(&self.letter.place) {
            return gone(&self.id);
        }
        let external_id = self.external_id();
        let raw = RawItem {
            external_id,
            document_type: MESSAGE,
            payload: self.letter.payload(),
            source_created_at: self.letter.received_at,
            source_updated_at: self.changed_at,
            is_deleted: false,
        };
        told(raw, self.letter)
    }
}

fn told(raw: RawItem, letter: Letter) -> Item {
    Item {
        raw,
        title: letter.subject.clone(),
        text: letter.in_words(),
        mentions: Vec::new(),
        letter: Some(Box::new(letter)),
        file: None,
    }
}

pub(super) fn external_id(id: &str) -> String {
    format!("{OBJECT}:{id}")
}

/// The tombstone of a message.
pub(super) fn gone(id: &str) -> Item {
    record::buried(record::tombstone(external_id(id), MESSAGE, None), Vec::new())
}

/// A file as its message has it, without its bytes. None: it has no name that is one.
pub(super) fn file_of(file: File) -> Option<Attachment> {
    let is_safe = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'=');
    if file.id.is_empty() || file.id.len() > 600 || !file.id.bytes().all(is_safe) {
        return None;
    }
    let kind = file.kind.as_deref().unwrap_or_default().rsplit('.').next().unwrap_or_default().to_owned();
    let said = file.content_type.as_deref().and_then(|kind| kind.split(';').next()).unwrap_or_default();
    let media_type = match kind.as_str() {
        "itemAttachment" => ITEM.to_owned(),
        "referenceAttachment" => REFERENCE.to_owned(),
        _ if said.trim().is_empty() => "application/octet-stream".to_owned(),
        _ => said.trim().to_ascii_lowercase(),
    };
    let mut attachment = Attachment {
        part: file.id,
        name: file.name.filter(|name| !name.trim().is_empty()),
        media_type,
        size_bytes: file.size.unwrap_or(0),
        content_id: file.content_id.map(|id| bare(&id)).filter(|id| !id.is_empty()),
        is_inline: file.is_inline == Some(true),
        content: None,
        left_out: None,
    };
    attachment.media_type = files::media_type(&attachment).to_owned();
    attachment.left_out = match attachment.media_type.as_str() {
        // It only names a file elsewhere.
        REFERENCE => Some(LeftOut::Kind),
        _ => files::verdict(&attachment),
    };
    Some(attachment)
}

/// The media types that we give to what Graph gives none: an attached message, and a link to a file in a cloud.
pub(super) const ITEM: &str = "message/rfc822";
pub(super) const REFERENCE: &str = "application/x-reference";

fn one(fields: &Fields, key: &str) -> Option<Correspondent> {
    person(fields.get(key)?)
}

fn people(fields: &Fields, key: &str) -> Vec<Correspondent> {
    fields.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(person).collect()
}

fn person(value: &Value) -> Option<Correspondent> {
    let said = |key: &str| {
        let text = value.pointer(&format!("/emailAddress/{key}"))?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let (name, address) = (said("name"), said("address"));
    if name.is_none() && address.is_none() {
        return None;
    }
    let address = address.unwrap_or_default();
    Some(Correspondent { name: name.filter(|name| *name != address), address })
}

fn headers(fields: &Fields) -> Vec<(String, String)> {
    let all = fields.get("internetMessageHeaders").and_then(Value::as_array).into_iter().flatten();
    let pair = |header: &Value| {
        let text = |key: &str| header.get(key).and_then(Value::as_str);
        let value = text("value").unwrap_or_default().trim();
        Some((text("name")?.to_owned(), value.chars().take(HEADER_MAX_CHARS).collect()))
    };
    all.take(HEADERS_MAX).filter_map(pair).collect()
}

fn header<'a>(headers: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
}

/// Oldest first, and the letter that is answered last.
fn references(headers: &[(String, String)]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in ["references", "in-reply-to"] {
        let words = header(headers, name).unwrap_or_default().split_whitespace();
        for id in words.filter(|word| word.starts_with('<')).map(bare) {
            if !all.contains(&id) {
                all.push(id);
            }
        }
    }
    all
}

fn bare(id: &str) -> String {
    id.trim().trim_start_matches('<').trim_end_matches('>').to_owned()
}

fn notes(fields: &Fields, headers: &[(String, String)]) -> Vec<Note> {
    let mut notes = Vec::new();
    let kind = fields.get("@odata.type").and_then(Value::as_str).unwrap_or_default();
    if kind.to_ascii_lowercase().contains("eventmessage") {
        notes.push(Note::Calendar);
    }
    let content_type = header(headers, "content-type").unwrap_or_default().to_ascii_lowercase();
    for (beginning, note) in [
        ("multipart/report", Note::Report),
        ("multipart/signed", Note::Signed),
        ("multipart/encrypted", Note::Encrypted),
        ("application/pkcs7-mime", Note::Encrypted),
        ("application/x-pkcs7-mime", Note::Encrypted),
    ] {
        if content_type.starts_with(beginning) {
            notes.push(note);
        }
    }
    notes
}

/// Where sample data keeps the bytes of files, until they are part of the letter: a letter's payload has none.
const BYTES: &str = "contentBytes";

const SAMPLED: [Place; 3] = [Place::Inbox, Place::Sent, Place::Other];

/// Reads a message of the sample data. Its folders are Outlook's own, by their names that are the same in every language.
pub(super) fn raw(_: &str, value: Value) -> Result<RawItem, Failed> {
    let folder = |(name, shown, place): &(&str, &str, Place)| {
        ((*name).to_owned(), Folder { name: (*shown).to_owned(), place: *place })
    };
    let folders: Folders = WELL_KNOWN.iter().map(folder).collect();
    let bytes: serde_json::Map<String, Value> = value
        .get("attachments")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|file| Some((file.get("id")?.as_str()?.to_owned(), file.get(BYTES)?.clone())))
        .collect();
    let message = message(value, &folders, None)?;
    let mut item = message.item(&SAMPLED).raw;
    if let Some(payload) = item.payload.as_object_mut() {
        record::put_part(payload, BYTES, bytes);
    }
    Ok(item)
}

/// Whether a message of the sample data lies where none is read.
pub(super) fn is_passed_over(value: &Value) -> bool {
    let folder = value.get("parentFolderId").and_then(Value::as_str);
    let known = WELL_KNOWN.iter().find(|(name, ..)| Some(*name) == folder);
    known.is_some_and(|(_, _, place)| !SAMPLED.contains(place))
}

/// Makes of a message that [`raw`] read what memory takes.
pub(super) fn item(mut raw: RawItem) -> Item {
    use base64::Engine as _;
    let bytes = raw.payload.as_object_mut().and_then(|payload| payload.remove(BYTES)).unwrap_or_default();
    let Some(mut letter) = Letter::from_payload(&raw.payload).filter(|_| !raw.is_deleted) else {
        return record::buried(raw, Vec::new());
    };
    for file in &mut letter.files {
        let text = bytes.get(&file.part).and_then(Value::as_str).filter(|_| file.left_out.is_none());
        let decoded = text.and_then(|text| base64::prelude::BASE64_STANDARD.decode(text).ok());
        file.content = decoded.map(bytes::Bytes::from);
    }
    told(raw, letter)
}
