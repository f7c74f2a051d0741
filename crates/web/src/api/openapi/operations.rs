//! An operation's name and words, as generated clients and readers need them.

use serde_json::{Map, Value, json};

use super::super::error::Problem;

/// Refusals that any route can answer with, by status.
const REFUSALS: &[(&str, &str, &str)] = &[
    ("400", "Malformed", "The request cannot be understood, or has a query parameter that this route does not have"),
    ("401", "Unauthenticated", "No key was sent, or the key is not known or was revoked"),
    ("403", "Forbidden", "The key lacks the scope that this needs"),
    ("429", "TooMany", "Too many requests; `Retry-After` says when to try again"),
    ("503", "Unavailable", "The database is away, or the request took too long; try again"),
];

/// `components.responses`.
pub(super) fn refusals() -> Value {
    let described = REFUSALS.iter().map(|(_, name, words)| ((*name).to_owned(), problem(words)));
    described.collect::<Map<_, _>>().into()
}

fn problem(words: &str) -> Value {
    json!({ "description": words, "content": { "application/problem+json": { "schema": schema_of_problem() } } })
}

fn schema_of_problem() -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", <Problem as utoipa::ToSchema>::name()) })
}

pub(super) fn complete(path: &str, method: &str, operation: &mut Value) {
    let function = operation["operationId"].as_str().unwrap_or_default();
    operation["operationId"] = name(path, method, function).into();
    describe(operation);
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let is_bare = parameter["description"].as_str().unwrap_or_default().is_empty();
        if is_bare && parameter["in"] == "path" {
            parameter["description"] = about_id(path, parameter["name"].as_str().unwrap_or_default()).into();
        }
    }
    answer(path, operation);
}

/// The first sentence is the summary, all of it the description.
fn describe(operation: &mut Value) {
    let text = |field: &str| operation[field].as_str().unwrap_or_default().to_owned();
    let (summary, rest) = (text("summary").replace('\n', " "), text("description"));
    let first = summary.split_once(". ").map_or(summary.as_str(), |(first, _)| first);
    operation["summary"] = first.trim_end_matches('.').into();
    operation["description"] = [summary.as_str(), rest.as_str()].join("\n\n").trim().into();
}

/// A name such as `list_channels`, `get_channel` or `rotate_channel`, from the address and the method. `function` names operations that are not
/// about a noun: `search`, `ingest`.
fn name(path: &str, method: &str, function: &str) -> String {
    let Some(address) = path.strip_prefix("/api/v1/") else { return function.to_owned() };
    let parts: Vec<&str> = address.split('/').collect();
    if parts == [function] {
        return function.to_owned();
    }
    let is_id = |part: &str| part.starts_with('{');
    // Each noun that is followed by an id is one thing.
    let one_or_all = |(nth, part): (usize, &&str)| {
        let noun = part.replace('-', "_");
        if parts.get(nth + 1).is_some_and(|next| is_id(next)) { singular(&noun) } else { noun }
    };
    let nouns = parts.iter().enumerate().filter(|(_, part)| !is_id(part));
    let mut words: Vec<String> = nouns.map(one_or_all).collect();
    let last = parts.last().copied().unwrap_or_default();
    // It ends with a plural, so with no id. All mail is several messages; a source's mail is its settings.
    let is_of_all = singular(last) != last && (last != "mail" || parts.len() == 1);
    let verb = match method {
        "get" if is_of_all => "list".to_owned(),
        "post" if last == "{action}" => "act_on".to_owned(),
        "post" if is_of_all || parts.len() == 1 => {
            let all = words.pop().unwrap_or_default();
            words.push(singular(&all));
            "create".to_owned()
        }
        "post" => words.pop().unwrap_or_default(), // the address ends with what is done
        "patch" => "change".to_owned(),
        "put" => "set".to_owned(),
        other => other.to_owned(),
    };
    words.insert(0, verb);
    words.join("_")
}

/// The word for one of them; the same word where it is none for several.
fn singular(noun: &str) -> String {
    let irregular = [("people", "person"), ("mail", "message")];
    if let Some((_, one)) = irregular.iter().find(|(many, _)| *many == noun) {
        return (*one).to_owned();
    }
    for (many, one) in [("ies", "y"), ("ches", "ch"), ("s", "")] {
        if let Some(stem) = noun.strip_suffix(many) {
            return format!("{stem}{one}");
        }
    }
    noun.to_owned()
}

/// `{id}` in `/channels/{id}` is the id of the channel.
fn about_id(path: &str, parameter: &str) -> String {
    let before =
        path.split('/').take_while(|part| part.trim_matches(['{', '}']) != parameter).last().unwrap_or_default();
    format!("The id of the {}", singular(before).replace(['-', '_'], " "))
}

/// Words for each answer; the refusals that any route has.
fn answer(path: &str, operation: &mut Value) {
    let is_of_key = path.starts_with("/api/");
    let Some(answers) = operation["responses"].as_object_mut() else { return };
    for (status, answer) in answers.iter_mut() {
        if answer["description"].as_str().unwrap_or_default().is_empty() {
            answer["description"] = words_for(status).into();
        }
        if status.starts_with('2') {
            continue;
        }
        answer["content"] = json!({ "application/problem+json": { "schema": schema_of_problem() } });
    }
    // A 429 is answered to an address that asks too much at once, whatever it asks for.
    for (status, name, _) in REFUSALS.iter().filter(|(status, ..)| is_of_key || *status == "429") {
        let refusal = || json!({ "$ref": format!("#/components/responses/{name}") });
        answers.entry(*status).or_insert_with(refusal);
    }
}

fn words_for(status: &str) -> &'static str {
    match status {
        "201" => "Created",
        "202" => "Accepted; the rest happens in the background",
        "204" => "Done; the answer has no body",
        "404" => "There is no such thing in the key's tenant",
        "409" => "Its state does not allow that now",
        "413" => "The request is too large",
        "415" => "This kind of content cannot be read",
        "416" => "The file has no such part",
        "502" => "The provider did not answer as it should",
        other => REFUSALS.iter().find(|(status, ..)| *status == other).map_or("Done", |(_, _, words)| *words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_after_what_they_do() {
        for (method, path, function, expected) in [
            ("get", "/api/v1/channels", "list", "list_channels"),
            ("post", "/api/v1/channels", "create", "create_channel"),
            ("patch", "/api/v1/channels/{id}", "change", "change_channel"),
            ("delete", "/api/v1/searches/{id}", "delete", "delete_search"),
            ("post", "/api/v1/channels/{id}/rotate", "rotate", "rotate_channel"),
            ("get", "/api/v1/activities/{id}", "one", "get_activity"),
            ("get", "/api/v1/activities/{id}/recording", "one", "get_activity_recording"),
            ("get", "/api/v1/queues/{lane}/items", "items", "list_queue_items"),
            ("post", "/api/v1/queues/{lane}/items/{id}/{action}", "act", "act_on_queue_item"),
            ("post", "/api/v1/sources/{id}/failures/retry", "retry_all", "retry_source_failures"),
            ("post", "/api/v1/sources/{id}/failures/{external_id}/retry", "retry", "retry_source_failure"),
            ("post", "/api/v1/dead-letters/{activity_id}/replay", "replay", "replay_dead_letter"),
            ("get", "/api/v1/people", "list", "list_people"),
            ("get", "/api/v1/people/{id}", "one", "get_person"),
            ("post", "/api/v1/clients/{id}/facts", "add_fact", "create_client_fact"),
            ("put", "/api/v1/clients/{id}/facts/{name}", "set_fact", "set_client_fact"),
            ("get", "/api/v1/mail", "list", "list_mail"),
            ("get", "/api/v1/mail/{id}", "one", "get_message"),
            ("get", "/api/v1/mail/{id}/thread", "thread", "get_message_thread"),
            ("get", "/api/v1/sources/{id}/mail", "one", "get_source_mail"),
            ("get", "/api/v1/memory", "show", "get_memory"),
            ("post", "/api/v1/memory/reembed", "begin", "reembed_memory"),
            ("get", "/api/v1/search", "search", "search"),
            ("post", "/ingest/{key}", "ingest", "ingest"),
        ] {
            assert_eq!(name(path, method, function), expected, "{method} {path}");
        }
    }

    #[test]
    fn an_id_is_described_by_what_it_is_of() {
        assert_eq!(about_id("/api/v1/channels/{id}/rotate", "id"), "The id of the channel");
        assert_eq!(about_id("/api/v1/dead-letters/{activity_id}/replay", "activity_id"), "The id of the dead letter");
    }
}
