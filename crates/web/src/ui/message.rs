//! One message: its text, its HTML in a sealed frame, its files, its people and who they are, and where it comes from.

use askama::Template;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse};
use chrono::{DateTime, Utc};
use domain::mail::{Correspondent, LeftOut, Note, Place};
use domain::shown::{bytes, clipped, plural, shown_lines};
use domain::{DocumentId, DocumentStatus, normal_email};
use engine::mail::reading::{self, File, WholeLetter};
use futures_util::TryStreamExt as _;
use uuid::Uuid;

use super::document::{MOST_TEXT_CHARS, Step, cut, state, steps};
use super::layout::Layout;
use super::mail::{HERE, subject};
use super::text::{Badge, When};
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::Path;
use crate::app::App;
use crate::edge::{FILE_POLICY, letter_headers};

/// The people of one line of the head; the API has them all.
const MOST_PEOPLE: usize = 20;

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage {
    layout: Layout,
    subject: String,
    /// The mailbox: its page and its name.
    mailbox: (String, String),
    badge: Badge,
    story: &'static str,
    is_deleted: bool,
    /// The document will still change automatically.
    is_live: bool,
    people: Vec<PeopleRow>,
    times: Vec<(&'static str, When)>,
    /// Where it lies in the mailbox, in words.
    place: String,
    /// The page of its conversation, and how many messages that has.
    thread: Option<(String, String)>,
    /// Its page at the provider, and the provider's name.
    link: Option<(String, String)>,
    /// Outcomes of reading it: the style sheet's name for how grave they are, and words.
    notes: Vec<(&'static str, &'static str)>,
    text: String,
    quoted: String,
    signature: String,
    /// The address of its HTML, and the style sheet's word for how high that is.
    frame: Option<(String, &'static str)>,
    files: Vec<FileRow>,
    headers: Vec<(String, String)>,
    /// Its document's page, and the original.
    document: String,
    original: Option<String>,
    steps: Vec<Step>,
}

/// A line of the head.
struct PeopleRow {
    label: &'static str,
    people: Vec<PersonRow>,
    /// The number of those that are not shown; empty: none.
    more: String,
}

struct PersonRow {
    words: String,
    /// The page of the contact.
    contact: Option<String>,
    /// The page of the client, and its name.
    client: Option<(String, String)>,
}

struct FileRow {
    name: String,
    note: String,
    /// The address by which it is saved.
    save: Option<String>,
    document: Option<String>,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
) -> Result<impl IntoResponse, ApiError> {
    let whole = reading::whole(&app.env, &visitor, DocumentId(id)).await?;
    let now = app.env.clock.now();
    let (badge, story) = state(&whole.stored.document);
    let (document, letter) = (&whole.stored.document, &whole.letter);
    let is_deleted = document.deleted_at.is_some();
    let subject = match is_deleted {
        true => "Deleted message".to_owned(),
        false => subject(letter.subject.as_deref().or(document.title.as_deref())),
    };
    let text = |text: Option<&str>| shown_lines(&cut(text.unwrap_or_default().trim_matches('\n'), MOST_TEXT_CHARS));
    let page = MessagePage {
        layout: Layout::new(&visitor, now, subject.clone(), HERE),
        mailbox: (format!("/connections/accounts/{}", document.source_id), clipped(&document.source_name, 80)),
        badge,
        story,
        is_deleted,
        is_live: !is_deleted && document.is_pending(),
        people: people(&whole),
        times: times(&whole, now),
        place: place(letter.place, &letter.folders),
        thread: (whole.n_in_thread > 1).then(|| (format!("{HERE}/{id}/thread"), counted(whole.n_in_thread))),
        link: whole.url().map(|url| (url.to_owned(), app.env.providers.label(&document.source_provider).to_owned())),
        notes: letter.notes.iter().copied().map(note).collect(),
        text: text(Some(&letter.text)),
        quoted: text(letter.quoted.as_deref()),
        signature: text(letter.signature.as_deref()),
        frame: letter.html.as_deref().map(|body| (format!("{HERE}/{id}/html"), height(body))),
        files: whole.files.iter().enumerate().map(|(nth, file)| FileRow::new(id, nth, file)).collect(),
        headers: letter.headers.iter().map(|(name, value)| (clipped(name, 80), clipped(value, 2_000))).collect(),
        document: format!("/documents/{id}"),
        original: document.raw_payload.as_ref().map(|_| format!("/documents/{id}/original")),
        steps: steps(document, whole.n_embedded, None, now),
        subject,
    };
    html(&page)
}

/// The message as it was sent, in a page of its own that can load and run nothing.
pub(crate) async fn frame(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
) -> Result<impl IntoResponse, ApiError> {
    let body = reading::html(&app.env, &visitor, DocumentId(id)).await?.ok_or(ApiError::NotFound("message"))?;
    Ok((letter_headers(&app.env.config), Html(framed(&body))))
}

/// The height that a letter's HTML is likely to have, by its lines. Nothing in its frame runs, so nothing there can tell.
fn height(body: &str) -> &'static str {
    let n_chars: usize =
        body.split('<').filter_map(|part| part.split_once('>')).map(|(_, words)| words.trim().len()).sum();
    let small = body.to_ascii_lowercase();
    let n_breaks: usize = ["<br", "<p", "<div", "<tr", "<li", "<h"].iter().map(|tag| small.matches(tag).count()).sum();
    match n_breaks + n_chars / 80 + 10 * small.matches("<img").count() {
        ..=8 => "low",
        9..=20 => "middling",
        _ => "high",
    }
}

/// A page around what a letter says.
fn framed(body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light\"><title>The message as it was sent</title>\
         <style>body {{ margin: 12px; font: 14px/1.5 system-ui, sans-serif; color: #1a2226; background: #fff; overflow-wrap: break-word; }} \
         img {{ max-width: 100%; height: auto; }} .picture {{ display: inline-block; padding: 2px 8px; border: 1px dashed #b8c1c6; border-radius: 4px; \
         background: #f4f6f7; color: #5c6a71; font-size: 12px; font-style: normal; }}</style></head>\n<body>{body}</body></html>\n"
    )
}

/// A file of a message, to be saved: a browser must not make a page of it.
pub(crate) async fn file(
    State(app): State<App>,
    visitor: Visitor,
    Path((id, nth)): Path<(Uuid, usize)>,
) -> Result<impl IntoResponse, ApiError> {
    let missing = || ApiError::NotFound("file");
    let whole = reading::whole(&app.env, &visitor, DocumentId(id)).await?;
    let File { attachment, document } = whole.files.get(nth).ok_or_else(missing)?;
    let key =
        document.as_ref().filter(|document| !document.is_deleted).and_then(|document| document.blob_key.as_deref());
    let key = key.and_then(|key| key.parse().ok()).ok_or_else(missing)?;
    let (_, pieces) = app.env.blobs.get_stream(visitor.tenant_id, &key).await?.ok_or_else(missing)?;
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_SECURITY_POLICY, FILE_POLICY.to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", plain_name(attachment.name.as_deref()))),
    ];
    Ok((headers, Body::from_stream(pieces.map_err(std::io::Error::other))))
}

/// Letters and digits of a file's name: what is left cannot end the header's quotes, nor hide the file.
fn plain_name(name: Option<&str>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = name.unwrap_or("file").chars().take(150).map(|c| if is_plain(c) { c } else { '_' }).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "file".into() } else { name.to_owned() }
}

fn counted(n: i64) -> String {
    match n {
        reading::MOST_IN_THREAD => format!("{n} or more messages"),
        n => plural(n, "message", "messages"),
    }
}

fn people(whole: &WholeLetter) -> Vec<PeopleRow> {
    let letter = &whole.letter;
    // One answer to oneself is no news.
    let replies: Vec<Correspondent> =
        letter.reply_to.iter().filter(|one| Some(*one) != letter.from.as_ref()).cloned().collect();
    let rows = [
        ("From", letter.from.as_slice()),
        ("Reply to", replies.as_slice()),
        ("To", &letter.to),
        ("Cc", &letter.cc),
        ("Bcc", &letter.bcc),
    ];
    let row = |(label, people): (&'static str, &[Correspondent])| PeopleRow {
        label,
        people: people.iter().take(MOST_PEOPLE).map(|one| person(whole, one)).collect(),
        more: match people.len().saturating_sub(MOST_PEOPLE) {
            0 => String::new(),
            more => format!("and {more} more"),
        },
    };
    rows.into_iter().filter(|(_, people)| !people.is_empty()).map(row).collect()
}

fn person(whole: &WholeLetter, person: &Correspondent) -> PersonRow {
    let known = normal_email(&person.address).and_then(|address| whole.people.get(&address));
    let client = known.and_then(|known| Some((known.client_id?, known.client_name.as_deref()?)));
    PersonRow {
        words: clipped(&person.shown(), 120),
        contact: known.and_then(|known| known.contact_id).map(|id| format!("/clients/people/{id}")),
        client: client.map(|(id, name)| (format!("/clients/{id}"), clipped(name, 80))),
    }
}

fn times(whole: &WholeLetter, now: DateTime<Utc>) -> Vec<(&'static str, When)> {
    let sent = whole.letter.sent_at.filter(|sent| (*sent - whole.stored.at).abs() > chrono::TimeDelta::minutes(5));
    let sent = sent.map(|at| ("Sent, by its sender's clock", When::new(at, now)));
    let document = &whole.stored.document;
    let deleted = document.removed_at.or(document.deleted_at).map(|at| ("Deleted", When::new(at, now)));
    [("Came in", When::new(whole.stored.at, now))].into_iter().chain(sent).chain(deleted).collect()
}

/// Where a message lies, in words.
fn place(place: Place, folders: &[String]) -> String {
    let known = match place {
        Place::Inbox => Some("Inbox"),
        Place::Sent => Some("Sent"),
        Place::Drafts => Some("Drafts"),
        Place::Spam => Some("Spam"),
        Place::Deleted => Some("Deleted items"),
        Place::Other => None,
    };
    let named = folders.iter().map(|folder| clipped(folder, 60)).filter(|folder| Some(folder.as_str()) != known);
    known.map(str::to_owned).into_iter().chain(named).take(10).collect::<Vec<_>>().join(", ")
}

/// An outcome of reading it that a person should know of. What is missing here is a warning.
fn note(note: Note) -> (&'static str, &'static str) {
    match note {
        Note::Encrypted => ("warned", "It is encrypted, so only its head could be read."),
        Note::Signed => ("fine", "It is signed; the signature was not checked."),
        Note::Tnef => ("fine", "Its files came inside a winmail.dat, and were unpacked."),
        Note::TnefUnreadable => ("warned", "It has a winmail.dat that could not be unpacked."),
        Note::Calendar => ("fine", "It is an invitation, or an answer to one."),
        Note::Report => ("fine", "It is a report about another message: delivered, bounced or opened."),
        Note::Malformed => ("warned", "Parts of it do not follow the standard. What could be read is here."),
        Note::FilesUnread => {
            ("warned", "The provider did not list its files. Those that were read before are still here.")
        }
        Note::Cut => ("warned", "It is very long, so its text was cut."),
    }
}

impl FileRow {
    fn new(id: Uuid, nth: usize, File { attachment, document }: &File) -> Self {
        let kept = document.as_ref().filter(|document| !document.is_deleted);
        let state = match (attachment.left_out, kept) {
            (Some(why), _) => Some(left_out(why)),
            (None, None) => Some("not kept"),
            (None, Some(document)) => document.status.parse().ok().map(read_state),
        };
        let size = bytes(attachment.size_bytes);
        let parts = [Some(clipped(&attachment.media_type, 80)), Some(size), state.map(str::to_owned)];
        Self {
            name: clipped(
                attachment.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or("(no name)"),
                120,
            ),
            note: parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "),
            save: kept.filter(|document| document.blob_key.is_some()).map(|_| format!("{HERE}/{id}/files/{nth}")),
            document: kept.map(|document| format!("/documents/{}", document.id)),
        }
    }
}

/// How far a file is read; nothing, if it is.
pub(super) fn read_state(status: DocumentStatus) -> &'static str {
    match status {
        DocumentStatus::Completed => "",
        DocumentStatus::Failed => "it could not be read",
        DocumentStatus::Skipped => "left unread",
        _ => "waits to be read",
    }
}

pub(super) fn left_out(why: LeftOut) -> &'static str {
    match why {
        LeftOut::Kind => "not kept: files of this kind are left out",
        LeftOut::Inline => "not kept: it is part of how the message looks",
        LeftOut::Machine => "not kept: a signature, an invitation or a business card",
        LeftOut::TooLarge => "not kept: it is too large",
        LeftOut::Unreadable => "not kept: it cannot be read",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_cannot_leave_its_header() {
        for (name, plain) in [
            (Some("invoice 7.pdf"), "invoice_7.pdf"),
            (Some("a\"; filename=\"x.html\r\nset-cookie: y"), "a___filename__x.html__set-cookie__y"),
            (Some("..\\..\\.bashrc"), "_.._.bashrc"),
            (Some("..."), "file"),
            (Some("счёт.pdf"), "____.pdf"),
            (None, "file"),
        ] {
            assert_eq!(plain_name(name), plain, "{name:?}");
        }
    }

    #[test]
    fn a_place_is_named_once() {
        let folders = ["Inbox", "Orders"].map(str::to_owned);
        assert_eq!(place(Place::Inbox, &folders), "Inbox, Orders");
        assert_eq!((place(Place::Other, &folders[1..]).as_str(), place(Place::Other, &[]).as_str()), ("Orders", ""));
    }

    #[test]
    fn a_frame_is_as_high_as_its_letter_is_long() {
        assert_eq!(height("<p>Hello</p><p>Until Friday.</p>"), "low");
        assert_eq!(height(&"<p>A line of some words.</p>".repeat(12)), "middling");
        assert_eq!((height(&"<br>".repeat(60)), height("<p>See<img src='cid:a'><img src='cid:b'>")), ("high", "high"));
    }

    #[test]
    fn a_letter_in_its_frame_is_a_whole_page() {
        let page = framed("<p>Hello</p>");
        assert!(page.starts_with("<!doctype html>") && page.contains("<body><p>Hello</p></body>"), "{page}");
        assert!(!page.contains("http"), "it names nothing that could be loaded: {page}");
    }
}
