//! `list_sources`: what is connected, whether it works, and how fresh it is.

use std::collections::HashMap;

use domain::Scope;
use engine::pull::words::Health;
use engine::sources::{self, Watched};
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Hints, Spec, maybe_text, read, text, untrusted};
use crate::mcp::Asking;
use crate::mcp::answer::{Answer, Refusal, UNTRUSTED};

pub(super) static SPEC: Spec = Spec {
    name: "list_sources",
    title: "List sources",
    description: "Lists where this memory's documents come from: connected accounts with their health and last successful sync, webhooks, files and notes. Use an \
                  `id` as `source` of search_memory. Says how fresh an answer can be.",
    scope: Scope::Read,
    hints: Hints::Reads,
    input: || (json!({}), &[]),
    output,
    run: |asking, arguments| run(asking, arguments).boxed(),
};

fn output() -> (Value, &'static [&'static str]) {
    let source = json!({
        "type": "object",
        "properties": {
            "id": text("Give it to search_memory as `source`"),
            "name": text("Its name"),
            "provider": text("The kind of account, `manual` for files and notes"),
            "health": maybe_text("How it is, in a word; none for what is not synced"),
            "says": maybe_text("The same as a sentence"),
            "last_success": maybe_text("When it was last read to the end"),
            "documents": { "type": ["integer", "null"], "description": "Its documents, up to 1,000: a thousand is at least so many" },
            "link": maybe_text("Its page"),
        },
        "required": ["id", "name", "provider"],
    });
    let properties = json!({
        "_untrusted": untrusted(),
        "sources": { "type": "array", "items": source, "description": "The oldest first" },
    });
    (properties, &["_untrusted", "sources"])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {}

#[derive(Serialize)]
struct Listed {
    #[serde(rename = "_untrusted")]
    untrusted: &'static str,
    sources: Vec<Shown>,
}

#[derive(Serialize)]
struct Shown {
    id: Uuid,
    name: String,
    provider: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    says: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_success: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

async fn run(asking: &Asking, arguments: Value) -> Result<Answer, Refusal> {
    let Arguments {} = read(arguments)?;
    let (env, caller) = (&asking.app.env, &asking.caller);
    let all = env.db.read(caller, async |tx| store::sources::all(tx).await).await?;
    let watched = sources::watch(env, caller, None).await?;
    let mut watched: HashMap<Uuid, Watched> = watched.into_iter().map(|one| (one.source.id, one)).collect();
    let shown = all.into_iter().map(|source| match watched.remove(&source.id) {
        Some(Watched { source, job, is_being_forgotten }) => {
            let who = env.providers.label(&source.provider);
            let health = Health::new(who, &source, job.as_ref(), is_being_forgotten);
            Shown {
                link: Some(format!("{}/connections/accounts/{}", env.config.base_url(), source.id)),
                health: Some(health.condition.word()),
                says: Some(health.what),
                last_success: source.last_successful_sync_at.map(|at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string()),
                documents: Some(source.n_documents),
                id: source.id,
                name: source.name,
                provider: source.provider,
            }
        }
        None => Shown {
            id: source.id,
            name: source.name,
            provider: source.provider,
            health: None,
            says: None,
            last_success: None,
            documents: None,
            link: None,
        },
    });
    let listed = Listed { untrusted: UNTRUSTED, sources: shown.collect() };
    let n_hits = listed.sources.len();
    Answer::new(&listed, Some(n_hits))
}
