//! `get_document`: a document's text, page by page, with where it comes from.

use domain::{ActivityId, DocumentId, DocumentType, Scope};
use engine::documents;
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::memory::Document;
use uuid::Uuid;

use super::{Hints, Spec, maybe_text, read, text, untrusted};
use crate::mcp::Asking;
use crate::mcp::answer::{Answer, Refusal, UNTRUSTED, pages};
use crate::mcp::pages::{Place, link, page_url, source_url, title_of, uri};

/// Longer metadata is left out.
const MOST_METADATA_BYTES: usize = 2_000;

pub(super) static SPEC: Spec = Spec {
    name: "get_document",
    title: "Get a document",
    description: "Gets the whole text of a remembered document, page by page, with its lineage: source, type, dates, links. `page` gets one page; \
                  `part` of a hit of search_memory gets the page that the hit is on.",
    scope: Scope::Read,
    hints: Hints::Reads,
    input,
    output,
    run: |asking, arguments| run(asking, arguments).boxed(),
};

fn input() -> (Value, &'static [&'static str]) {
    let number = |description: &str| json!({ "type": "integer", "minimum": 1, "description": description });
    let properties = json!({
        "id": text("The `id` of a hit, its `uri`, or the address of its page"),
        "page": number("The page to get, from 1. Default: 1"),
        "part": number("Instead of a page: the `part` of a hit"),
    });
    (properties, &["id"])
}

fn output() -> (Value, &'static [&'static str]) {
    let number = |description: &str| json!({ "type": "integer", "description": description });
    let properties = json!({
        "_untrusted": untrusted(),
        "id": text("Its id"),
        "uri": text("The same as a resource"),
        "title": text("Its title"),
        "text": text("This page of its text"),
        "page": number("This page, from 1"),
        "n_pages": number("The number of pages"),
        "next_page": { "type": ["integer", "null"], "description": "The page after this one; none on the last" },
        "link": text("Where a person opens it: cite this"),
        "lineage": {
            "type": "object",
            "description": "Where it comes from",
            "properties": {
                "source": { "type": "object", "description": "Its source: id, name, provider" },
                "type": text("The type of document"),
                "external_id": text("Its name at the source"),
                "made_at": maybe_text("When it was made at its source"),
                "changed_at": maybe_text("When it was changed there"),
                "stored_at": text("When it was first stored here"),
                "updated_at": text("When it was last changed here"),
                "revision": number("How often its text was written"),
                "page": text("Its page in this memory"),
                "activity": maybe_text("The page of the event that it was made of"),
                "metadata": { "type": ["object", "null"], "description": "What else its source says of it" },
            },
        },
    });
    (properties, &["_untrusted", "id", "title", "text", "page", "n_pages", "link", "lineage"])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    page: Option<usize>,
    part: Option<usize>,
}

#[derive(Serialize)]
struct Got<'a> {
    #[serde(rename = "_untrusted")]
    untrusted: &'static str,
    id: Uuid,
    uri: String,
    title: String,
    text: &'a str,
    page: usize,
    n_pages: usize,
    next_page: Option<usize>,
    link: String,
    lineage: Lineage<'a>,
}

#[derive(Serialize)]
pub(super) struct Lineage<'a> {
    source: SourceRef<'a>,
    r#type: String,
    external_id: &'a str,
    made_at: Option<String>,
    changed_at: Option<String>,
    stored_at: String,
    updated_at: String,
    revision: i32,
    page: String,
    activity: Option<String>,
    metadata: Option<&'a Value>,
}

#[derive(Serialize)]
struct SourceRef<'a> {
    id: Uuid,
    name: &'a str,
    provider: &'a str,
}

async fn run(asking: &Asking, arguments: Value) -> Result<Answer, Refusal> {
    let asked: Arguments = read(arguments)?;
    let place = Place::of(&asked.id).ok_or_else(no_id)?;
    let n_chunks = asked.part.map_or(0, |part| i64::try_from(part).unwrap_or(i64::MAX));
    let whole = documents::whole(&asking.app.env, &asking.caller, DocumentId(place.id), n_chunks).await?;
    let document = there(&whole.document)?;
    let all = pages(&document.text);
    let wanted = match (asked.part, asked.page) {
        (Some(part), _) => {
            let chunk = whole.chunks.get(part - 1).filter(|_| part > 0);
            let chunk = chunk.ok_or_else(|| Refusal::mend("it has no such part: get page 1"))?;
            page_of(&all, &document.text, &chunk.text)
        }
        (None, page) => page.unwrap_or(place.page),
    };
    let page = wanted.checked_sub(1).and_then(|nth| all.get(nth));
    let page = page.ok_or_else(|| Refusal::mend(format!("it has {} pages, counted from 1", all.len())))?;
    let config = &asking.app.env.config;
    let got = Got {
        untrusted: UNTRUSTED,
        id: document.id,
        uri: uri(document.id, wanted),
        title: title_of(document.title.as_deref(), &document.external_id),
        text: page,
        page: wanted,
        n_pages: all.len(),
        next_page: (wanted < all.len()).then_some(wanted + 1),
        link: link(config, document.id, source_url(&document.source_metadata)),
        lineage: lineage(config, document),
    };
    Answer::page(&got)
}

pub(super) fn no_id() -> Refusal {
    Refusal::mend("that is no id of a document: take `id` of a hit as it is")
}

/// A document that is still there.
pub(super) fn there(document: &Document) -> Result<&Document, Refusal> {
    match document.deleted_at {
        None => Ok(document),
        Some(at) => Err(Refusal::mend(format!("it was deleted on {}", at.format("%Y-%m-%d")))),
    }
}

pub(super) fn lineage<'a>(config: &engine::Config, document: &'a Document) -> Lineage<'a> {
    let shown = |at: chrono::DateTime<chrono::Utc>| at.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let is_activity = matches!(document.document_type, DocumentType::Activity(_));
    let activity = ActivityId::from_external_id(&document.external_id).filter(|_| is_activity);
    let metadata = Some(&document.source_metadata);
    Lineage {
        source: SourceRef { id: document.source_id, name: &document.source_name, provider: &document.source_provider },
        r#type: document.document_type.to_string(),
        external_id: &document.external_id,
        made_at: document.source_created_at.map(shown),
        changed_at: document.source_updated_at.map(shown),
        stored_at: shown(document.created_at),
        updated_at: shown(document.updated_at),
        revision: document.revision,
        page: page_url(config, document.id),
        activity: activity.map(|id| format!("{}/activities/{id}", config.base_url())),
        metadata: metadata.filter(|metadata| metadata.is_object() && metadata.to_string().len() <= MOST_METADATA_BYTES),
    }
}

/// The page, from 1, on which a chunk begins. A chunk is a part of the text, but for blank space.
fn page_of(pages: &[&str], text: &str, chunk: &str) -> usize {
    let begins = chunk.trim().lines().next().unwrap_or_default();
    let at = text.find(chunk.trim()).or_else(|| text.find(begins)).unwrap_or(0);
    let mut end = 0;
    let ends = pages.iter().map(|page| {
        end += page.len();
        end
    });
    (ends.take_while(|end| *end <= at).count() + 1).min(pages.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_on_the_page_where_it_begins() {
        let text = "one two\nthree four\nfive six";
        let pages = ["one two\n", "three four\n", "five six"];
        for (chunk, page) in [("one two", 1), ("three four\nfive", 2), (" five six ", 3), ("nowhere", 1)] {
            assert_eq!(page_of(&pages, text, chunk), page, "{chunk}");
        }
        assert_eq!(page_of(&[""], "", "x"), 1);
    }
}
