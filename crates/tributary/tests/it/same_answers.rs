//! The command line prints with `--json` what the API answers, so that a script can go from one to the other.

use domain::Scope;
use serde_json::{Value, json};
use testkit::wait_until;

use crate::app::client;
use crate::source_pages::{House, SOON};

/// Without what moves while one looks: when a key was last used.
fn still(mut value: Value) -> Value {
    for key in value["keys"].as_array_mut().into_iter().flatten() {
        key["last_used_at"] = Value::Null;
    }
    value
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_prints_what_the_api_answers() {
    let house = House::new().await;
    let (_, key) = house.t.world.caller(house.t.world.tenant_id, &[Scope::Service]).await;
    let ask = async |method: &str, path: &str, body: Value| -> Value {
        let request = client().request(method.parse().expect("a method"), format!("{}/api/v1{path}", house.app.url));
        let answer = request.bearer_auth(key.reveal()).json(&body).send().await.expect("an answer");
        let (status, text) = (answer.status(), answer.text().await.expect("a body"));
        assert!(status.is_success(), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    };
    let hubspot = json!({ "provider": "hubspot", "key": house.t.fakes.hubspot_private_app_token() });
    let source = ask("POST", "/sources", hubspot).await["id"].as_str().expect("an id").to_owned();
    let is_read = async || ask("GET", "/jobs?limit=1", Value::Null).await["jobs"][0]["status"] == "completed";
    assert!(wait_until(SOON, is_read).await, "it was not read");
    let has_clients = async || {
        house.t.count("select count(*) from client_intelligence").await > 0
            && house.t.count("select count(*) from tributary.dirty_clients").await == 0
            && house.t.count("select count(*) from client_intelligence where marks <> matched_marks").await == 0
    };
    assert!(wait_until(SOON, has_clients).await, "no client was derived and matched");
    ask("POST", "/channels", json!({ "name": "shop", "provider": "generic" })).await;
    let contact = json!({ "email": "ann@example.com", "first_name": "Ann" });
    let contact = ask("POST", "/contacts", contact).await["id"].to_string();
    let person = json!({ "email": "bea@example.com", "first_name": "Bea", "built_in_agent": true });
    let person = ask("POST", "/people", person).await["id"].to_string();
    let job = ask("GET", "/jobs?limit=1", Value::Null).await["jobs"][0]["id"].as_str().expect("an id").to_owned();
    let documents = ask("GET", "/documents?limit=1", Value::Null).await;
    let document = documents["documents"][0]["id"].as_str().expect("an id").to_owned();
    let clients = ask("GET", "/clients?limit=1", Value::Null).await;
    let client = clients["clients"][0]["id"].as_str().expect("an id").to_owned();

    let same: &[(&str, &[&str])] = &[
        ("/keys", &["key", "list"]),
        ("/sources", &["source", "list"]),
        (&format!("/sources/{source}"), &["source", "show", &source]),
        ("/jobs?limit=20", &["job", "list"]),
        (&format!("/jobs/{job}"), &["job", "show", &job]),
        ("/memory", &["memory", "status"]),
        ("/queues", &["queue", "list"]),
        ("/queues/ingestion_queue/items", &["queue", "items", "ingestion_queue"]),
        ("/documents?limit=3", &["document", "list", "--limit", "3"]),
        (&format!("/documents/{document}"), &["document", "show", &document]),
        ("/clients?limit=3", &["client", "list", "--limit", "3"]),
        (&format!("/clients/{client}"), &["client", "show", &client]),
        ("/people", &["person", "list"]),
        (&format!("/people/{person}"), &["person", "show", "bea@example.com"]),
        ("/contacts", &["contact", "list"]),
        (&format!("/contacts/{contact}"), &["contact", "show", &contact]),
        ("/activities", &["activity", "list"]),
    ];
    for (path, args) in same {
        // The house works meanwhile: what moves between the two looks is looked at again.
        for look in 1.. {
            let (is_well, printed, told) = house.tributary(&[*args, &["--json"]].concat());
            assert!(is_well, "{args:?}: {printed}{told}");
            let printed: Value =
                serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{args:?}: {error}: {printed}"));
            let (printed, answered) = (still(printed), still(ask("GET", path, Value::Null).await));
            if printed == answered {
                break;
            }
            assert!(look < 10, "{args:?} prints {printed}\nand GET {path} answers {answered}");
        }
    }
}
