//! `get_client`: everything known of a customer, each fact with the documents that say so.

use domain::Scope;
use engine::clients::{self, Summary, WholeClient, merged};
use engine::pull::words::facts::{in_words, label};
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Hints, Spec, maybe_text, read, text, untrusted};
use crate::api::clients::{kind, name};
use crate::mcp::Asking;
use crate::mcp::answer::{Answer, Refusal, UNTRUSTED};
use crate::mcp::pages::{page_url, title_of};

/// Documents that are named for one fact.
const MOST_CITED: usize = 3;

pub(super) static SPEC: Spec = Spec {
    name: "get_client",
    title: "Get a client",
    description: "Gets what is known of a client, a company or a person that the tenant works with: facts such as open deals, invoices and contacts, each with \
                  the documents that say so. Takes a name, a domain, an e-mail address or an id; several that fit are listed to choose from.",
    scope: Scope::Read,
    hints: Hints::Reads,
    input,
    output,
    run: |asking, arguments| run(asking, arguments).boxed(),
};

fn input() -> (Value, &'static [&'static str]) {
    (
        json!({ "client": text("The name, a part of it, a domain, an e-mail address or the id of the client") }),
        &["client"],
    )
}

fn output() -> (Value, &'static [&'static str]) {
    let list =
        |description: &str| json!({ "type": "array", "items": { "type": "object" }, "description": description });
    let properties = json!({
        "_untrusted": untrusted(),
        "client": {
            "type": ["object", "null"],
            "description": "The one client that fits",
            "properties": {
                "id": text("Give it to search_memory as `client`"),
                "name": text("Its name"),
                "link": text("Its page: cite this"),
                "sources": { "type": "array", "items": { "type": "string" }, "description": "The sources that know it" },
                "facts": list("Each with label, text, who says so and the documents that do"),
                "people": list("Its people: name, e-mail addresses, kind of record"),
                "n_people": { "type": "integer", "description": "The number of its people" },
                "contacts": list("Its contacts: name, e-mail address, telephone number"),
                "updated_at": maybe_text("When something of it changed last"),
            },
        },
        "candidates": list("The clients that fit, if there are several: id, name, summary"),
    });
    (properties, &["_untrusted", "candidates"])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    client: String,
}

#[derive(Serialize)]
struct Got {
    #[serde(rename = "_untrusted")]
    untrusted: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Client>,
    candidates: Vec<Candidate>,
}

#[derive(Serialize)]
struct Client {
    id: Uuid,
    name: String,
    link: String,
    sources: Vec<String>,
    facts: Vec<Fact>,
    people: Vec<Person>,
    n_people: i64,
    contacts: Vec<Contact>,
    updated_at: String,
}

#[derive(Serialize)]
struct Fact {
    label: String,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    said_by: Option<String>,
    documents: Vec<Cited>,
    /// Other values, by others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<String>,
}

#[derive(Serialize)]
struct Cited {
    id: Uuid,
    title: String,
    link: String,
}

#[derive(Serialize)]
struct Person {
    name: String,
    emails: Vec<String>,
    kind: String,
}

#[derive(Serialize)]
struct Contact {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone_number: Option<String>,
}

#[derive(Serialize)]
struct Candidate {
    id: Uuid,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    link: String,
}

async fn run(asking: &Asking, arguments: Value) -> Result<Answer, Refusal> {
    let asked: Arguments = read(arguments)?;
    let (env, caller) = (&asking.app.env, &asking.caller);
    let found = clients::find(env, caller, &asked.client).await?;
    let base_url = env.config.base_url();
    let got = match found.as_slice() {
        [] => return Err(Refusal::mend("no client fits: try a part of the name, or search_memory")),
        [one] => {
            let whole = clients::whole(env, caller, one.id).await?;
            Got { untrusted: UNTRUSTED, client: Some(client(asking, &whole)), candidates: Vec::new() }
        }
        several => {
            let candidate = |summary: &Summary| Candidate {
                id: summary.id.0,
                name: summary.name.clone(),
                summary: summary
                    .facts
                    .iter()
                    .find(|fact| fact.name == "summary")
                    .map(|fact| in_words(&fact.name, &fact.value)),
                link: format!("{base_url}/clients/{}", summary.id),
            };
            Got { untrusted: UNTRUSTED, client: None, candidates: several.iter().map(candidate).collect() }
        }
    };
    let n_hits = if got.client.is_some() { 1 } else { got.candidates.len() };
    Answer::new(&got, Some(n_hits))
}

fn client(asking: &Asking, whole: &WholeClient) -> Client {
    let config = &asking.app.env.config;
    let cited = |fact: &merged::Fact| {
        let documents = whole.documents_of(fact).into_iter().take(MOST_CITED);
        let cited = documents.map(|cited| Cited {
            id: cited.id,
            title: title_of(cited.title.as_deref(), &cited.external_id),
            link: page_url(config, cited.id),
        });
        cited.collect::<Vec<_>>()
    };
    let fact = |fact: &merged::Fact| Fact {
        label: label(&fact.name),
        text: in_words(&fact.name, &fact.value),
        sources: fact.sources.clone(),
        said_by: fact.said.as_ref().map(|said| said.by.clone()),
        documents: cited(fact),
        also: fact.also.iter().map(|also| in_words(&also.name, &also.value)).collect(),
    };
    let people = whole.people.iter().map(|record| Person {
        name: name(record).to_owned(),
        emails: record.emails.clone(),
        kind: kind(record),
    });
    let contacts = whole.contacts.iter().map(|contact| Contact {
        name: contact.called(),
        email: contact.email.clone(),
        phone_number: contact.phone_number.clone(),
    });
    Client {
        id: whole.id.0,
        name: whole.name.clone(),
        link: format!("{}/clients/{}", config.base_url(), whole.id),
        sources: whole.summary().sources,
        facts: whole.facts.iter().map(fact).collect(),
        people: people.collect(),
        n_people: whole.n_people,
        contacts: contacts.collect(),
        updated_at: whole.updated_at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }
}
