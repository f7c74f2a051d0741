//! Maps Gmail's messages to letters, and labels to places and folders.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use domain::mail::{self, Correspondent, LeftOut, Letter, Place, body};
use serde::Deserialize;
use serde_json::Value;

use super::fold::is_mark;
use super::notices::decoded;
use super::wire::Message;
use crate::pull::{Failed, Item, RawItem, record};

pub(super) const MESSAGE: &str = "gmail.message";
pub(super) const ATTACHMENT: &str = "gmail.attachment";
pub(super) const OBJECT: &str = "message";

/// Gmail's own labels that are places, in the order in which they decide, and their names for people. A letter to oneself has the labels of
/// both inbox and sent mail, and is in the inbox.
const PLACES: [(&str, Place, &str); 5] = [
    ("TRASH", Place::Deleted, "Bin"),
    ("SPAM", Place::Spam, "Spam"),
    ("DRAFT", Place::Drafts, "Drafts"),
    ("INBOX", Place::Inbox, "Inbox"),
    ("SENT", Place::Sent, "Sent"),
];

/// The place of a message with these labels. None of them: it was archived.
pub(super) fn place(labels: &[String]) -> Place {
    let place = PLACES.iter().find(|(label, ..)| labels.iter().any(|known| known == label));
    place.map_or(Place::Other, |(_, place, _)| *place)
}

/// Whether messages with these labels are read. Chats are no letters.
pub(super) fn is_read(labels: &[String], places: &[Place]) -> bool {
    places.contains(&place(labels)) && !labels.iter().any(|label| label == "CHAT")
}

/// The labels in the owner's words, without marks. `name` tells those that the owner made.
pub(super) fn folders(labels: &[String], name: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let labels = labels.iter().filter(|label| !is_mark(label));
    let shown = labels.filter_map(|label| match PLACES.iter().find(|(known, ..)| known == label) {
        Some((_, _, shown)) => Some((*shown).to_owned()),
        None => name(label),
    });
    shown.collect()
}

/// Whether a label is one that the owner made, and so has a name that only Gmail knows.
pub(super) fn is_owners(label: &str) -> bool {
    !is_mark(label) && PLACES.iter().all(|(known, ..)| *known != label)
}

pub(super) fn external_id(id: &str) -> String {
    format!("{OBJECT}:{id}")
}

/// Reads the letter of a message that came with its bytes.
pub(super) fn letter(message: &Message, folders: Vec<String>) -> Result<Letter, &'static str> {
    let raw = message.raw.as_deref().ok_or("it came without its content")?;
    let bytes = decoded(raw).ok_or("its content is not base64")?;
    let mut letter = mail::parse(&bytes);
    letter.thread_id = message.thread_id.clone();
    letter.received_at = received_at(message);
    letter.place = place(&message.label_ids);
    letter.folders = folders;
    Ok(letter)
}

pub(super) fn received_at(message: &Message) -> Option<DateTime<Utc>> {
    record::time(message.internal_date.clone().map(Value::String).as_ref())
}

/// The item of a letter.
pub(super) fn of_letter(id: &str, letter: Letter) -> Item {
    let raw = RawItem {
        external_id: external_id(id),
        document_type: MESSAGE,
        payload: letter.payload(),
        source_created_at: letter.received_at,
        // Gmail tells no time of a change, so the last answer counts.
        source_updated_at: None,
        is_deleted: false,
    };
    whole(raw, letter)
}

/// A letter that is gone, or lies where nobody reads.
pub(super) fn tombstone(id: &str) -> Item {
    record::buried(record::tombstone(external_id(id), MESSAGE, None), Vec::new())
}

fn whole(raw: RawItem, letter: Letter) -> Item {
    let title = letter.subject.clone().filter(|subject| !subject.trim().is_empty());
    Item { raw, title, text: letter.in_words(), mentions: Vec::new(), letter: Some(Box::new(letter)), file: None }
}

/// Sets a conversation apart into its messages, each with the conversation's id.
pub(super) fn apart(thread: &mut Value) {
    let Some(messages) = thread.get_mut("messages").and_then(Value::as_array_mut) else { return };
    let mut messages = std::mem::take(messages);
    for message in &mut messages {
        if message.get("threadId").is_none() {
            message["threadId"] = thread["id"].clone();
        }
    }
    *thread = Value::Array(messages);
}

/// A message as Google's MCP server tells it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Told {
    thread_id: Option<String>,
    subject: Option<String>,
    sender: String,
    to_recipients: Vec<String>,
    cc_recipients: Vec<String>,
    date: String,
    plaintext_body: String,
}

/// Brings a message of Gmail's JSON, or of the MCP server's, into its one form: a letter's payload. The files of such a message stay where
/// they are.
pub(super) fn raw(object: &str, message: Value) -> Result<RawItem, Failed> {
    let failed = |reason: &str| record::failed(OBJECT, message.get("id"), reason, Value::Null);
    if object != OBJECT {
        return Err(failed("it is of a kind that is not read"));
    }
    let Some(id) = message.get("id").and_then(record::plain_id) else {
        return Err(failed("it has no id that is one"));
    };
    let read = match message.get("raw") {
        Some(_) => Message::deserialize(&message).map_err(|_| "it is of another form").and_then(|message| {
            // Sample data has no labels beside Gmail's own.
            letter(&message, folders(&message.label_ids, |label| Some(label.to_owned())))
        }),
        None => Told::deserialize(&message).map(Told::letter).map_err(|_| "it is of another form"),
    };
    let mut letter = read.map_err(failed)?;
    for file in &mut letter.files {
        // The payload keeps no bytes.
        file.left_out = file.left_out.or(Some(LeftOut::Unreadable));
    }
    Ok(RawItem {
        external_id: external_id(&id),
        document_type: MESSAGE,
        payload: letter.payload(),
        source_created_at: letter.received_at,
        source_updated_at: None,
        is_deleted: false,
    })
}

impl Told {
    fn letter(self) -> Letter {
        let one = |text: String| match text.rsplit_once('<') {
            Some((name, address)) => {
                let name = Some(name.trim().trim_matches('"').to_owned()).filter(|name| !name.is_empty());
                Correspondent { name, address: address.trim_end_matches('>').trim().to_owned() }
            }
            None => Correspondent { name: None, address: text.trim().to_owned() },
        };
        let people = |texts: Vec<String>| texts.into_iter().map(one).collect();
        // A day, or a moment.
        let day = NaiveDate::parse_from_str(&self.date, "%Y-%m-%d").map(|day| day.and_time(NaiveTime::MIN).and_utc());
        let at = day.or_else(|_| DateTime::parse_from_rfc3339(&self.date).map(|at| at.to_utc())).ok();
        let split = body::split(&self.plaintext_body);
        Letter {
            thread_id: self.thread_id,
            from: Some(self.sender).filter(|sender| !sender.is_empty()).map(one),
            to: people(self.to_recipients),
            cc: people(self.cc_recipients),
            subject: self.subject,
            sent_at: at,
            received_at: at,
            text: split.text,
            quoted: split.quoted,
            signature: split.signature,
            ..Letter::default()
        }
    }
}

/// Makes of a stored message what memory takes.
pub(super) fn item(raw: RawItem) -> Item {
    match Letter::from_payload(&raw.payload) {
        Some(letter) if !raw.is_deleted => whole(raw, letter),
        _ => record::buried(raw, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE;
    use serde_json::json;

    use super::*;

    fn labels(labels: &[&str]) -> Vec<String> {
        labels.iter().map(|label| (*label).to_owned()).collect()
    }

    #[test]
    fn labels_decide_where_a_message_lies_and_what_its_folders_are_called() {
        let name = |label: &str| (label == "Label_7").then(|| "Customers/Stonebrook".to_owned());
        for (ids, expected, shown) in [
            (&["INBOX", "UNREAD", "CATEGORY_PERSONAL"][..], Place::Inbox, &["Inbox"][..]),
            (&["SENT"], Place::Sent, &["Sent"]),
            (&["SENT", "INBOX"], Place::Inbox, &["Sent", "Inbox"]),
            (&["DRAFT"], Place::Drafts, &["Drafts"]),
            (&["INBOX", "TRASH"], Place::Deleted, &["Inbox", "Bin"]),
            (&["SPAM"], Place::Spam, &["Spam"]),
            (&["Label_7", "IMPORTANT", "STARRED"], Place::Other, &["Customers/Stonebrook"]),
            (&["Label_9"], Place::Other, &[]),
            (&[], Place::Other, &[]),
        ] {
            assert_eq!((place(&labels(ids)), folders(&labels(ids), name)), (expected, labels(shown)), "{ids:?}");
        }
        let read = [Place::Inbox, Place::Sent, Place::Other];
        assert!(is_read(&labels(&["INBOX"]), &read) && is_read(&[], &read));
        assert!(!is_read(&labels(&["DRAFT"]), &read) && !is_read(&labels(&["CHAT"]), &read));
    }

    #[test]
    fn a_message_with_its_bytes_becomes_a_letter() {
        let bytes = "From: Ana <ana@acme.example>\r\nTo: bo@larkfield.example\r\nSubject: Lift\r\n\r\nTuesday?\r\n";
        let message = json!({
            "id": "18c", "threadId": "18b", "labelIds": ["INBOX"], "internalDate": "1793527200000",
            "raw": BASE64_URL_SAFE.encode(bytes),
        });
        let item = item(raw(OBJECT, message).expect("a letter"));
        assert_eq!((item.raw.external_id.as_str(), item.raw.document_type), ("message:18c", MESSAGE));
        assert_eq!(item.title.as_deref(), Some("Lift"));
        let letter = item.letter.expect("a letter");
        assert_eq!(
            (letter.thread_id.as_deref(), letter.place, letter.text.as_str()),
            (Some("18b"), Place::Inbox, "Tuesday?")
        );
        assert_eq!(letter.folders, ["Inbox"]);
        assert_eq!(item.raw.source_created_at.map(record::spelled).as_deref(), Some("2026-11-01T10:00:00.000Z"));
        assert_eq!(item.text, letter.in_words());
    }

    #[test]
    fn a_message_of_the_mcp_server_becomes_a_letter_without_its_head() {
        let message = json!({
            "id": "18c", "threadId": "18b", "subject": "Lift", "sender": "Ana <ana@acme.example>", "date": "2026-11-01",
            "toRecipients": ["bo@larkfield.example"], "plaintextBody": "Tuesday?", "attachmentIds": ["x"],
        });
        let item = item(raw(OBJECT, message).expect("a letter"));
        let letter = item.letter.expect("a letter");
        assert_eq!(letter.from.map(|from| from.shown()).as_deref(), Some("Ana <ana@acme.example>"));
        assert_eq!((letter.to[0].address.as_str(), letter.text.as_str()), ("bo@larkfield.example", "Tuesday?"));
        assert_eq!(letter.received_at.map(record::spelled).as_deref(), Some("2026-11-01T00:00:00.000Z"));
    }

    #[test]
    fn what_is_no_message_stays_behind_with_a_reason() {
        for (message, reason) in [
            (json!({ "raw": "" }), "it has no id that is one"),
            (json!({ "id": "1/2" }), "it has no id that is one"),
            (json!({ "id": "1", "raw": 5 }), "it is of another form"),
            (json!({ "id": "1", "raw": null }), "it came without its content"),
            (json!({ "id": "1", "raw": "%" }), "its content is not base64"),
            (json!({ "id": "1", "toRecipients": "x" }), "it is of another form"),
        ] {
            assert_eq!(raw(OBJECT, message).expect_err("no message").reason, reason);
        }
    }
}
