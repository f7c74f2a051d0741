//! `remember`: a note becomes a document, found as soon as the call returns.

use domain::Scope;
use domain::shown::clipped;
use engine::memory::Change;
use engine::memory::door::{self, Incoming};
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Hints, Spec, maybe_text, read, text};
use crate::mcp::Asking;
use crate::mcp::answer::{Answer, Refusal};
use crate::mcp::pages::page_url;

pub(super) static SPEC: Spec = Spec {
    name: "remember",
    title: "Remember a note",
    description: "Stores a text in this memory, where everybody of the tenant finds it at once. Use it when the person asks for it. With the same `name` it \
                  replaces what was remembered under it; sent twice, it is stored once.",
    scope: Scope::Write,
    hints: Hints::Adds,
    input,
    output,
    run: |asking, arguments| run(asking, arguments).boxed(),
};

fn input() -> (Value, &'static [&'static str]) {
    let properties = json!({
        "text": text("The text to remember, plain or markdown"),
        "title": text("A title of a few words"),
        "name": text("A name of your own under which it is replaced later, such as `meeting-2026-11-15`. Default: its text is its name"),
        "url": text("The address of what it is about"),
    });
    (properties, &["text"])
}

fn output() -> (Value, &'static [&'static str]) {
    let properties = json!({
        "id": text("The document's id"),
        "change": { "type": "string", "enum": ["created", "updated", "unchanged", "superseded", "deleted", "kept_out"], "description": "What became of it" },
        "link": text("Its page"),
        "note": maybe_text("Why nothing was stored"),
    });
    (properties, &["id", "change", "link"])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    text: String,
    title: Option<String>,
    name: Option<String>,
    url: Option<String>,
}

#[derive(Serialize)]
struct Taken {
    id: Uuid,
    change: Change,
    link: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

async fn run(asking: &Asking, arguments: Value) -> Result<Answer, Refusal> {
    let asked: Arguments = read(arguments)?;
    let caller = &asking.caller;
    // Who says so: what an assistant writes is no more trusted than the assistant.
    let mut metadata =
        Map::from_iter([("added_by".to_owned(), json!(format!("{} over MCP", clipped(&caller.key_name, 80))))]);
    if let Some(url) = asked.url.filter(|url| !url.is_empty()) {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        if !is_web || url.len() > 2_000 {
            return Err(Refusal::mend("url is a web address of at most 2,000 characters"));
        }
        metadata.insert("url".into(), url.into());
    }
    let incoming = Incoming {
        content: asked.text.into_bytes().into(),
        title: asked.title.filter(|title| !title.trim().is_empty()),
        external_id: asked.name.filter(|name| !name.trim().is_empty()),
        metadata,
        ..Incoming::default()
    };
    let taken = door::accept(&asking.app.env, caller.tenant_id, incoming).await?;
    let is_kept_out = taken.change == Change::KeptOut;
    let taken = Taken {
        id: taken.id.0,
        change: taken.change,
        link: page_url(&asking.app.env.config, taken.id.0),
        note: is_kept_out.then_some("a person deleted this document, so nothing was stored"),
    };
    Answer::new(&taken, None)
}
