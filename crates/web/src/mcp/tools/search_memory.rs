//! `search_memory`: the best documents for a question, by words and by meaning.

use domain::Scope;
use engine::memory::recall::{self, Hit};
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::memory::{Filters, Mode, Sort};
use uuid::Uuid;

use super::{Hints, Spec, maybe_text, read, text, untrusted};
use crate::api::search::Moment;
use crate::mcp::Asking;
use crate::mcp::answer::{Answer, Refusal, UNTRUSTED};
use crate::mcp::pages::{link_of, place_url, title_of, uri};
use crate::mcp::room::room;

const MOST_HITS: usize = 20;

pub(super) static SPEC: Spec = Spec {
    name: "search_memory",
    title: "Search memory",
    description: "Finds what was remembered: e-mails, calls, messages, notes, files and records of connected accounts, by words and by meaning. \
                  Each hit has a snippet, the reason why it matches and a link. Says so if nothing fits. A phrase in quotation marks must be there as it is.",
    scope: Scope::Read,
    hints: Hints::Reads,
    input,
    output,
    run: |asking, arguments| run(asking, arguments).boxed(),
};

fn input() -> (Value, &'static [&'static str]) {
    let properties = json!({
        "query": text("What to look for, in any words or as a question; up to 2,000 characters"),
        "k": { "type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": 8, "description": "At most so many hits" },
        "type": text("Only documents of this type, such as `activity.email`, `note` or `hubspot.deal`"),
        "source": text("Only documents of this source: an `id` of list_sources"),
        "client": text("Only what is known of this client: an `id` of get_client"),
        "since": text("Only from this time on: `2026-11-15` or `2026-11-15T12:00:00Z`"),
        "until": text("Only before this time; a day counts whole"),
        "mode": { "type": "string", "enum": ["hybrid", "keyword", "vector"], "default": "hybrid", "description": "By words and meaning, by words alone, or by meaning alone" },
        "sort": { "type": "string", "enum": ["relevance", "date"], "default": "relevance", "description": "The best first, or the newest first" },
        "cursor": text("`next_cursor` of the page before, with the same query and filters"),
    });
    (properties, &["query"])
}

fn output() -> (Value, &'static [&'static str]) {
    let hit = json!({
        "type": "object",
        "properties": {
            "id": text("Give it to get_document"),
            "uri": text("The same as a resource"),
            "title": text("Its title"),
            "type": text("The type of document"),
            "source": text("The name of its source"),
            "at": text("When it was made at its source, else stored"),
            "snippet": text("The best part of it"),
            "why": text("Why it matched"),
            "score": { "type": "number", "description": "Higher is better, within this answer" },
            "keyword_rank": { "type": "integer", "description": "Its place by words" },
            "vector_rank": { "type": "integer", "description": "Its place by meaning" },
            "similarity": { "type": "number", "description": "How close it is in meaning, up to 1" },
            "part": { "type": "integer", "description": "The part of it that matched; give it to get_document" },
            "n_parts": { "type": "integer", "description": "The number of its parts" },
            "file_page": { "type": "integer", "description": "The page, sheet or slide of its file that has that part" },
            "file_page_name": text("That page's own name"),
            "link": text("Where a person opens it: cite this"),
            "page": text("Its place on its page in this memory"),
            "copies": { "type": "integer", "description": "Documents with this text, or nearly" },
        },
        "required": ["id", "title", "snippet", "why", "link"],
    });
    let hits = |description: &str| json!({ "type": "array", "items": hit, "description": description });
    let properties = json!({
        "_untrusted": untrusted(),
        "hits": hits("The best first"),
        "nothing_fits": { "type": "boolean", "description": "Nothing that is remembered fits the question" },
        "closest": hits("The closest, if nothing fits: not answers"),
        "next_cursor": maybe_text("Give it as `cursor` for the next page; none on the last"),
        "note": maybe_text("Why the answer may be incomplete"),
    });
    (properties, &["_untrusted", "hits", "nothing_fits"])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    k: Option<usize>,
    r#type: Option<String>,
    source: Option<Uuid>,
    client: Option<Uuid>,
    since: Option<String>,
    until: Option<String>,
    mode: Option<Mode>,
    sort: Option<Sort>,
    cursor: Option<String>,
}

#[derive(Serialize)]
struct Found {
    #[serde(rename = "_untrusted")]
    untrusted: &'static str,
    hits: Vec<Shown>,
    nothing_fits: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    closest: Vec<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize)]
struct Shown {
    id: Uuid,
    uri: String,
    title: String,
    r#type: String,
    source: String,
    at: String,
    snippet: String,
    why: String,
    score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyword_rank: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vector_rank: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    part: i32,
    n_parts: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_page: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_page_name: Option<String>,
    link: String,
    page: String,
    copies: usize,
}

async fn run(asking: &Asking, arguments: Value) -> Result<Answer, Refusal> {
    let query = query(read(arguments)?)?;
    let _room = room(&asking.app, &asking.caller).await?;
    let answer = recall::search(&asking.app.env, &asking.caller, &query).await?;
    let shown = |hits: Vec<Hit>| hits.into_iter().map(|hit| shown(asking, hit)).collect::<Vec<_>>();
    let found = Found {
        untrusted: UNTRUSTED,
        hits: shown(answer.hits),
        nothing_fits: answer.is_nothing_fitting,
        closest: shown(answer.closest),
        next_cursor: answer.next,
        note: answer.note,
    };
    let n_hits = found.hits.len();
    Answer::new(&found, Some(n_hits))
}

fn query(asked: Arguments) -> Result<recall::Query, Refusal> {
    let moment = |given: Option<String>| match given.filter(|text| !text.is_empty()) {
        Some(text) => text.parse::<Moment>().map(Some).map_err(Refusal::mend),
        None => Ok(None),
    };
    let k = asked.k.unwrap_or(8);
    if !(1..=MOST_HITS).contains(&k) {
        return Err(Refusal::mend(format!("k is 1 to {MOST_HITS}; `next_cursor` leads to more")));
    }
    let filters = Filters {
        source: asked.source,
        r#type: asked.r#type.filter(|kind| !kind.is_empty()),
        since: moment(asked.since)?.map(Moment::begins),
        until: moment(asked.until)?.map(Moment::ends),
        client: asked.client,
        ..Filters::default()
    };
    Ok(recall::Query {
        text: asked.query,
        filters,
        k,
        mode: asked.mode.unwrap_or_default(),
        sort: asked.sort.unwrap_or_default(),
        cursor: asked.cursor.filter(|cursor| !cursor.is_empty()),
        with_facets: false,
    })
}

fn shown(asking: &Asking, hit: Hit) -> Shown {
    let config = &asking.app.env.config;
    let round = |number: f64| (number * 10_000.0).round() / 10_000.0;
    Shown {
        link: link_of(config, &hit),
        page: place_url(config, &hit),
        id: hit.document_id,
        uri: uri(hit.document_id, 1),
        title: title_of(hit.title.as_deref(), &hit.external_id),
        r#type: hit.document_type.to_string(),
        source: hit.source_name,
        at: hit.at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        snippet: hit.snippet.into_iter().map(|part| part.text).collect(),
        why: hit.why,
        score: round(hit.score),
        keyword_rank: hit.keyword_rank,
        vector_rank: hit.vector_rank,
        similarity: hit.similarity.map(round),
        part: hit.part.0,
        n_parts: hit.part.1,
        file_page: hit.page,
        file_page_name: hit.page_label,
        copies: hit.others.len() + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: Value) -> Result<recall::Query, String> {
        read(arguments).and_then(query).map_err(|refusal| format!("{refusal:?}"))
    }

    #[test]
    fn arguments_are_those_of_the_schema() {
        let query = of(
            json!({ "query": "late", "type": "note", "since": "2026-11-15", "mode": "keyword", "sort": "date", "k": 3 }),
        );
        let query = query.expect("a query");
        assert_eq!((query.text.as_str(), query.k, query.mode, query.sort), ("late", 3, Mode::Keyword, Sort::Date));
        assert_eq!(query.filters.since.map(|at| at.to_rfc3339()).as_deref(), Some("2026-11-15T00:00:00+00:00"));
        assert_eq!(of(json!({ "query": "late" })).expect("a query").k, 8);
        for odd in [
            json!({}),
            json!({ "query": 7 }),
            json!({ "query": "x", "k": 0 }),
            json!({ "query": "x", "k": 21 }),
            json!({ "query": "x", "since": "yesterday" }),
            json!({ "query": "x", "source": "hubspot" }),
            json!({ "query": "x", "mode": "magic" }),
            json!({ "query": "x", "tenant_id": "7" }),
        ] {
            assert!(of(odd.clone()).is_err(), "{odd}");
        }
    }
}
