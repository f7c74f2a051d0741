//! One document and where it comes from: the original, its file, its text, its chunks, and what happened to it.

use askama::Template;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::shown::{bytes, clipped, number, plural, shown, shown_lines};
use domain::text::has_nul;
use domain::{ActivityId, BlobKey, DocumentId, DocumentType, ProcessingStatus, Scope, hex};
use engine::documents::{self, Chunk, WholeDocument};
use engine::files;
use engine::mail::reading::{Named, came_with};
use engine::pull::words::facts::document_type;
use serde_json::Value;
use store::activities::{self, Activity, Attached, Payload};
use store::memory::Document;
use uuid::Uuid;

use super::deleted::DoneQuery;
use super::fields::{self, FieldLine};
use super::file::{self, FilePart, PagesPart};
use super::file_acts::ShownQuery;
use super::layout::Layout;
use super::mail::subject;
use super::marked::MarkQuery;
use super::text::{Badge, When};
use super::{Visitor, html, reading};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;
use crate::edge::FILE_POLICY;

/// Originals up to here are shown on the page; larger ones are behind their link.
const MOST_ORIGINAL_BYTES: u64 = 256 * 1024;
/// A text up to here is shown unfolded.
const SHORT_TEXT_CHARS: usize = 1_500;
pub(super) const MOST_TEXT_CHARS: usize = 200_000;
const MOST_CHUNKS: i64 = 200;

#[derive(Template)]
#[template(path = "document.html")]
struct DocumentPage {
    layout: Layout,
    title: String,
    badge: Badge,
    story: String,
    flash: &'static str,
    /// Where its form goes: it can be deleted, or let in again.
    delete_href: Option<String>,
    restore_href: Option<String>,
    /// It is of an activity, which stays.
    is_activity: bool,
    /// Its file may be read again, and its fields corrected.
    may_act: bool,
    id: Uuid,
    csrf: String,
    facts: Vec<Fact>,
    /// The page of the message that it is.
    mail: Option<String>,
    /// The page of the client that it is a record of.
    client: Option<String>,
    /// The message that it came with; or the activity, and that one's document if it is there.
    came_with: Vec<Link>,
    /// The documents of the files that came with it.
    files: Vec<Link>,
    /// Its tombstone, and nothing else.
    is_deleted: bool,
    /// The document will still change automatically.
    is_live: bool,
    original: Original,
    metadata: String,
    file: Option<FilePart>,
    fields: Vec<FieldLine>,
    /// Its text page by page, if its file has pages.
    pages: Option<PagesPart>,
    text: String,
    text_size: String,
    is_text_long: bool,
    chunks_title: String,
    chunks: Vec<ChunkRow>,
    more_chunks: String,
    steps: Vec<Step>,
}

pub(super) struct Fact {
    pub label: &'static str,
    pub text: String,
    pub times: Vec<When>,
}

struct Original {
    /// Says what it is, or why it is not here.
    what: String,
    /// Type, size and hash.
    facts: Vec<String>,
    body: String,
    href: Option<String>,
}

struct ChunkRow {
    id: Uuid,
    number: String,
    badge: Badge,
    text: String,
}

struct Link {
    name: String,
    href: String,
}

/// A step that happened or will happen.
pub(super) struct Step {
    /// Drawn as done, waiting or wrong.
    pub tone: &'static str,
    pub what: String,
    pub times: Vec<When>,
    pub detail: String,
    pub facts: Vec<String>,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
    Query(query): Query<DoneQuery>,
    Query(shown): Query<ShownQuery>,
    Query(mark): Query<MarkQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let WholeDocument { document, chunks, n_embedded } =
        documents::whole(&app.env, &visitor, DocumentId(id), MOST_CHUNKS).await?;
    let (activity, payload) = load_activity(&app, &visitor, &document).await?;
    let original = load_original(&app, &visitor, &document, payload).await?;
    let (came_with, files) = load_related(&app, &visitor, &document).await?;
    let told = files::told(&app.env, &visitor, &document).await?;
    let pages = match &told {
        Some(told) => file::pages(&app, &visitor, &document, told, shown.page, &mark).await?,
        None => None,
    };
    let client = super::search::clients_of(&app, &visitor, &[document.id]).await?.remove(&document.id);
    let (now, title) = (app.env.clock.now(), title(&document));
    let is_settled = activity
        .as_ref()
        .is_none_or(|a| matches!(a.processing_status, ProcessingStatus::Completed | ProcessingStatus::Failed));
    let n_chars = document.text.chars().count();
    let (badge, story) = file::story(&document, told.as_ref()).unwrap_or_else(|| {
        let (badge, story) = state(&document);
        (badge, story.to_owned())
    });
    let n_chunks = i64::from(document.n_chunks);
    let (may_act, is_removed) =
        (visitor.may(Scope::Write) && !visitor.csrf().is_empty(), document.removed_at.is_some());
    let may_delete = may_act && !is_removed && document.document_type != DocumentType::Client;
    html(&DocumentPage {
        layout: Layout::new(&visitor, now, title.clone(), "/documents"),
        title,
        badge,
        story,
        flash: [query.done.in_words(), shown.done.in_words()]
            .into_iter()
            .find(|words| !words.is_empty())
            .unwrap_or_default(),
        delete_href: may_delete.then(|| format!("/documents/{id}/delete")),
        restore_href: (may_act && is_removed).then(|| format!("/documents/{id}/restore")),
        is_activity: is_activity(&document),
        may_act,
        id,
        csrf: visitor.csrf(),
        facts: facts(&document, now),
        mail: super::mail::page_of(&document.document_type, document.id),
        client,
        came_with,
        files,
        is_deleted: document.deleted_at.is_some(),
        is_live: document.deleted_at.is_none()
            && (document.is_pending() || !is_settled || reading::is_under_way(document.status)),
        file: told.as_ref().map(|told| FilePart::new(&document, told, now)),
        fields: told
            .as_ref()
            .map(|told| fields::lines(id, &told.fields, told.file.as_ref().and_then(|file| file.kind()), now))
            .unwrap_or_default(),
        pages,
        original,
        metadata: pretty(&document.source_metadata),
        text: shown_lines(&cut(&document.text, MOST_TEXT_CHARS)),
        text_size: text_size(n_chars),
        is_text_long: n_chars > SHORT_TEXT_CHARS,
        chunks_title: plural(n_chunks, "chunk", "chunks"),
        more_chunks: match n_chunks - MOST_CHUNKS {
            ..=0 => String::new(),
            more => format!("{} more; the API has them all", number(more)),
        },
        chunks: chunks.iter().map(ChunkRow::new).collect(),
        steps: steps(&document, n_embedded, activity.as_ref(), now),
    })
}

/// The exact bytes that came, to be saved: a browser must not make a page of them.
pub(crate) async fn original(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
) -> Result<impl IntoResponse, ApiError> {
    let document = documents::whole(&app.env, &visitor, DocumentId(id), 0).await?.document;
    let (_, payload) = load_activity(&app, &visitor, &document).await?;
    let bytes: Option<Bytes> = match payload {
        Some(Payload { body: Some(body), .. }) => Some(body.into()),
        payload => match blob_key(&document, payload.as_ref()) {
            Some(key) => app.env.blobs.get(visitor.tenant_id, &key).await?,
            None => document
                .raw_payload
                .as_ref()
                .and_then(|payload| serde_json::to_vec_pretty(payload).ok())
                .map(Bytes::from),
        },
    };
    let bytes = bytes.ok_or(ApiError::NotFound("original"))?;
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_SECURITY_POLICY, FILE_POLICY.to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{}.original\"", document.id)),
    ];
    Ok((headers, bytes))
}

/// The event that a document was made of, and its untouched original while that is kept.
async fn load_activity(
    app: &App,
    visitor: &Visitor,
    document: &Document,
) -> Result<(Option<Activity>, Option<Payload>), ApiError> {
    let id = ActivityId::from_external_id(&document.external_id).filter(|_| is_activity(document));
    let Some(id) = id else { return Ok((None, None)) };
    let loaded = app.env.db.read(visitor, async |tx| {
        let activity = activities::get(tx, visitor.tenant_id, id).await?;
        let payload = activities::payload(tx, visitor.tenant_id, id).await?;
        Ok((activity, payload))
    });
    Ok(loaded.await?)
}

/// The activity that a file came with, and the files that came with an activity.
async fn load_related(app: &App, visitor: &Visitor, document: &Document) -> Result<(Vec<Link>, Vec<Link>), ApiError> {
    let tenant_id = visitor.tenant_id;
    if let Some(id) =
        ActivityId::of_file(&document.external_id).filter(|_| document.document_type == DocumentType::File)
    {
        let loaded = app.env.db.read(visitor, async |tx| {
            let activity = activities::get(tx, tenant_id, id).await?;
            Ok((activity, store::memory::documents::of_activity(tx, tenant_id, id).await?))
        });
        let (Some(activity), of_activity) = loaded.await? else { return Ok(Default::default()) };
        let mut links = vec![Link { name: super::activities::title(&activity), href: format!("/activities/{id}") }];
        links.extend(of_activity.map(|id| Link { name: "its document".into(), href: format!("/documents/{id}") }));
        return Ok((links, Vec::new()));
    }
    let Some(id) = ActivityId::from_external_id(&document.external_id).filter(|_| is_activity(document)) else {
        let of_mail = came_with(&app.env, visitor, document).await?;
        let letter = of_mail.letter.map(|letter| Link {
            name: subject(letter.name.as_deref()),
            href: format!("{}/{}", super::mail::HERE, letter.id),
        });
        let file = |file: Named| Link {
            name: clipped(file.name.as_deref().unwrap_or("(no name)"), 120),
            href: format!("/documents/{}", file.id),
        };
        return Ok((letter.into_iter().collect(), of_mail.files.into_iter().map(file).collect()));
    };
    let attached = app.env.db.read(visitor, async |tx| activities::attached(tx, tenant_id, id).await).await?;
    let link = |one: &Attached| {
        Some(Link {
            name: clipped(files::attached::title(&one.file), 120),
            href: format!("/documents/{}", one.document_id?),
        })
    };
    Ok((Vec::new(), attached.iter().filter_map(link).collect()))
}

fn is_activity(document: &Document) -> bool {
    matches!(document.document_type, DocumentType::Activity(_))
}

fn blob_key(document: &Document, payload: Option<&Payload>) -> Option<BlobKey> {
    payload.and_then(|payload| payload.blob_key.as_deref()).or(document.blob_key.as_deref())?.parse().ok()
}

async fn load_original(
    app: &App,
    visitor: &Visitor,
    document: &Document,
    payload: Option<Payload>,
) -> Result<Original, ApiError> {
    let href = Some(format!("/documents/{}/original", document.id));
    let key = blob_key(document, payload.as_ref());
    let from = format!("from {}", clipped(&document.source_name, 80));
    if let Some(Payload { content_type, sha256, body: Some(body), .. }) = payload {
        let facts = vec![
            clipped(content_type.as_deref().unwrap_or("no type given"), 80),
            bytes(body.len() as u64),
            format!("sha256 {}", hex::encode(sha256)),
        ];
        return Ok(Original { what: format!("The request as it came {from}"), facts, body: readable(&body), href });
    }
    if let Some(key) = key {
        let found = app.env.blobs.get_stream(visitor.tenant_id, &key).await?.map(|(size, _)| size);
        let Some(size) = found else {
            let what = format!("The original {from} is missing in the blob store");
            return Ok(Original { what, facts: vec![format!("sha256 {key}")], body: String::new(), href: None });
        };
        let body = match size {
            ..=MOST_ORIGINAL_BYTES => app.env.blobs.get(visitor.tenant_id, &key).await?,
            _ => None,
        };
        let name = ["file_name", "attachment_filename"].iter().find_map(|name| document.source_metadata.get(*name));
        let what = match name.and_then(Value::as_str) {
            Some(name) => format!("The file {} {from}", clipped(name, 120)),
            None => format!("The request as it came {from}"),
        };
        let facts = vec![bytes(size), format!("sha256 {key}")];
        // The bytes of a PDF are nothing to look at: its pages are.
        let is_shown = |body: &Bytes| is_activity(document) || is_text(body);
        let body = body.filter(is_shown).map(|body| readable(&body)).unwrap_or_default();
        return Ok(Original { what, facts, body, href });
    }
    Ok(match &document.raw_payload {
        Some(payload) if is_activity(document) => {
            let what = format!("The request {from} was kept for 90 days; this is what was taken from it");
            Original { what, facts: Vec::new(), body: pretty(payload), href }
        }
        Some(payload) => {
            Original { what: format!("The record as it came {from}"), facts: Vec::new(), body: pretty(payload), href }
        }
        None if document.document_type == DocumentType::Client => Original {
            what: format!("The facts about one client in records {from}; its page names them"),
            facts: Vec::new(),
            body: String::new(),
            href: None,
        },
        None => Original {
            what: format!("A note {from}, which has no other original than its text"),
            facts: Vec::new(),
            body: String::new(),
            href: None,
        },
    })
}

fn title(document: &Document) -> String {
    match document.title.as_deref().map(str::trim) {
        Some(title) if !title.is_empty() => clipped(title, 200),
        _ => clipped(&document.external_id, 80),
    }
}

pub(super) fn state(document: &Document) -> (Badge, &'static str) {
    if document.removed_at.is_some() {
        return (
            Badge("deleted"),
            "A person deleted it. What it said is gone, and it stays deleted when its source sends it again.",
        );
    }
    if document.deleted_at.is_some() {
        return (
            Badge("deleted"),
            "Deleted at its source. What it said is gone; this line stays, so that a late update cannot bring it back.",
        );
    }
    match (document.is_pending(), document.n_chunks) {
        (true, _) => {
            (Badge("pending"), "Found by its words; it waits for the vectors by which it is found by its meaning.")
        }
        (false, 0) => (Badge("remembered"), "Known by its title and parties; it has no text yet."),
        (false, _) => (Badge("remembered"), "Found by its words and by its meaning."),
    }
}

fn facts(document: &Document, now: DateTime<Utc>) -> Vec<Fact> {
    let text = |label, text: String| Fact { label, text, times: Vec::new() };
    let time = |label, at| Fact { label, text: String::new(), times: vec![When::new(at, now)] };
    let mut facts = vec![
        text("Source", clipped(&document.source_name, 80)),
        text("Type", clipped(&document_type(&document.document_type), 60)),
    ];
    if document.deleted_at.is_none() {
        facts.push(text("Language", language(&document.lang)));
        facts.push(text(
            "Vectors",
            match &document.embedding_model {
                Some(model) => clipped(model, 60),
                None if document.is_pending() => "waits for them".into(),
                None => "none needed".into(),
            },
        ));
    }
    facts.push(text("Version", number(document.revision.into())));
    facts.extend(document.source_created_at.map(|at| time("Made", at)));
    facts.push(time("Remembered", document.created_at));
    if document.updated_at != document.created_at {
        facts.push(time("Changed", document.updated_at));
    }
    facts.extend(document.removed_at.or(document.deleted_at).map(|at| time("Deleted", at)));
    facts.extend(document.removed_by.as_deref().map(|by| text("Deleted by", clipped(by, 60))));
    facts.push(text("Name at its source", clipped(&document.external_id, 200))); // last, because it may be long
    facts
}

/// The language as PostgreSQL calls it; `simple` knows no language's endings.
fn language(lang: &str) -> String {
    match lang.rsplit('.').next().unwrap_or(lang) {
        "simple" => "not recognised".into(),
        known => shown(known),
    }
}

pub(super) fn steps(
    document: &Document,
    n_embedded: usize,
    activity: Option<&Activity>,
    now: DateTime<Utc>,
) -> Vec<Step> {
    let step = |tone, what: String, at: Option<DateTime<Utc>>| Step {
        tone,
        what,
        times: at.map(|at| When::new(at, now)).into_iter().collect(),
        detail: String::new(),
        facts: Vec::new(),
    };
    let from = clipped(&document.source_name, 80);
    let received = match activity {
        Some(activity) => step("done", format!("Received by {from}"), Some(activity.created_at)),
        None => step("done", format!("{} {from}", origin(document)), Some(document.created_at)),
    };
    let mut steps = vec![received, step("done", "Remembered".into(), Some(document.created_at))];
    if let Some(activity) = activity {
        steps.push(agent_step(activity, now));
    }
    // A deletion is a revision, too.
    let n_written = document.revision - i32::from(document.deleted_at.is_some());
    if n_written > 1 {
        let what = format!("Its text was written {} times", number(n_written.into()));
        steps.push(step("done", what, Some(document.updated_at)));
    }
    if let Some(at) = document.removed_at {
        let by = clipped(document.removed_by.as_deref().unwrap_or("a person"), 60);
        steps.push(step("wrong", format!("Deleted by {by}"), Some(at)));
        return steps;
    }
    if let Some(at) = document.deleted_at {
        steps.push(step("wrong", "Deleted at its source".into(), Some(at)));
        return steps;
    }
    let n_chunks = i64::from(document.n_chunks);
    steps.push(match &document.embedding_model {
        Some(model) => {
            let chunks = plural(n_chunks, "chunk", "chunks");
            step("done", format!("{chunks} embedded by {}", clipped(model, 60)), None)
        }
        None if n_chunks > 0 => Step {
            detail: "The lane embed makes them as soon as the embedder answers.".into(),
            ..step("waiting", format!("Waits for its vectors: {n_embedded} of {n_chunks} made"), None)
        },
        None => step("done", "Nothing to embed".into(), None),
    });
    steps
}

/// The words for its origin, which stand before the name of its source.
fn origin(document: &Document) -> &'static str {
    match document.source_metadata.get("provider") {
        Some(_) => "Read from",
        None if document.document_type == DocumentType::Client => "Made from the records of",
        None => "Added to",
    }
}

/// The steps that the event took with agents.
fn agent_step(activity: &Activity, now: DateTime<Utc>) -> Step {
    let field = |value: Option<&Value>, name: &str| {
        value.and_then(|value| value.get(name)).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let done = activity.processed_data.as_ref();
    let (tone, what) = match activity.processing_status {
        ProcessingStatus::Completed => ("done", "Completed by an agent"),
        ProcessingStatus::Processing => ("waiting", "In an agent's hands"),
        ProcessingStatus::Failed => ("wrong", "Given up"),
        ProcessingStatus::Raw => ("waiting", "Waits for an agent"),
    };
    let facts = done.and_then(|done| done.get("facts")).and_then(Value::as_array).into_iter().flatten();
    let in_words = |fact: &Value| match fact {
        Value::String(fact) => clipped(fact, 300),
        other => clipped(&other.to_string(), 300),
    };
    Step {
        tone,
        what: what.into(),
        times: if tone == "waiting" { Vec::new() } else { vec![When::new(activity.updated_at, now)] },
        detail: match tone {
            "wrong" => clipped(&field(activity.metadata.get("error"), "message"), 400),
            _ => clipped(&field(done, "summary"), 1_000),
        },
        facts: facts.take(20).map(in_words).collect(),
    }
}

impl ChunkRow {
    fn new(chunk: &Chunk) -> Self {
        Self {
            id: chunk.id,
            number: number(i64::from(chunk.ordinal) + 1),
            badge: Badge(if chunk.has_vector { "embedded" } else { "pending" }),
            text: shown_lines(&chunk.text),
        }
    }
}

/// Shows JSON with its lines and indents, anything else as the text it is.
fn readable(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => pretty(&value),
        Err(_) => shown_lines(&cut(&String::from_utf8_lossy(body), MOST_TEXT_CHARS)),
    }
}

fn is_text(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok_and(|text| !has_nul(text))
}

/// A value as indented JSON; empty for an empty value.
fn pretty(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => String::new(),
        value => shown_lines(&serde_json::to_string_pretty(value).unwrap_or_default()),
    }
}

pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}\n…", &text[..end]),
        None => text.to_owned(),
    }
}

fn text_size(n_chars: usize) -> String {
    let size = plural(i64::try_from(n_chars).unwrap_or(i64::MAX), "character", "characters");
    if n_chars > MOST_TEXT_CHARS { format!("{size}, of which the first are shown") } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn originals_are_shown_as_the_text_they_are() {
        assert_eq!(readable(br#"{"a":[1]}"#), "{\n  \"a\": [\n    1\n  ]\n}");
        assert_eq!(readable(b"plain \xff\x1b[31m"), "plain \u{fffd}␛[31m");
        assert_eq!(readable("<script>\u{202e}".as_bytes()), "<script>⟨U+202E⟩");
        assert_eq!(pretty(&serde_json::json!({})), "");
        assert!(is_text(b"caf\xc3\xa9") && !is_text(b"caf\xe9") && !is_text(b"%PDF\0"));
    }

    #[test]
    fn languages_read_well() {
        assert_eq!((language("pg_catalog.german"), language("simple")), ("german".into(), "not recognised".into()));
        assert_eq!(cut("éé", 1), "é\n…");
    }
}
