//! The stream of documents: each one that changes, to its tenant's readers and to nobody else, from where a reader left off.

use std::time::Duration;

use domain::{Scope, Secret};
use serde_json::{Value, json};
use testkit::wait_until;

use crate::app::client;
use crate::http::{Site, Stream};

const PATH: &str = "/documents/events";
const SOON: Duration = Duration::from_secs(8);

/// The documents that a stream has told of, in its order, and the id of its last event.
fn told(stream: &Stream) -> (Vec<Value>, String) {
    let mut documents = Vec::new();
    let mut last = String::new();
    for event in stream.1.split("\n\n") {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        last = field("id:").map_or(last, str::to_owned);
        if field("event:") == Some("document") {
            documents.push(serde_json::from_str(field("data:").expect("data")).expect("JSON"));
        }
    }
    (documents, last)
}

async fn remember(site: &Site, key: &Secret, external_id: &str, title: &str, text: &str) -> String {
    let note = json!({ "external_id": external_id, "title": title, "text": text });
    let request = client().post(format!("{}/api/v1/documents", site.app.url)).bearer_auth(key.reveal()).json(&note);
    let made: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

/// S17.
#[tokio::test(flavor = "multi_thread")]
async fn documents_are_told_as_they_change_and_only_to_their_own_tenant() {
    let site = Site::new().await;
    let key = site.key(&[Scope::Read, Scope::Write]).await;
    let other = site.world.other_tenant("somebody else").await;
    let (_, stranger) = site.world.caller(other, &[Scope::Read]).await;
    let mut stream = Stream::of(&site.app, PATH, &key, None).await;
    let mut foreign = Stream::of(&site.app, PATH, &stranger, None).await;
    assert!(stream.has("200 OK", SOON).await && foreign.has("200 OK", SOON).await);

    let id = remember(&site, &key, "n1", "Heating", "The heating is serviced every October.").await;
    assert!(stream.has(&id, SOON).await, "no event came: {}", stream.1);
    let (documents, place) = told(&stream);
    let event = documents.last().expect("an event");
    assert_eq!((&event["id"], &event["title"], &event["status"]), (&json!(id), &json!("Heating"), &json!("completed")));
    assert!(event.get("skip_reason").is_none() && event["updated_at"].is_string(), "{event}");
    assert!(!foreign.has(&id, Duration::from_millis(700)).await, "S17: {}", foreign.1);

    // Cut off, it hears of what it missed: a change, and another document's deletion.
    drop(stream);
    let gone = remember(&site, &key, "n2", "Parcel", "The parcel arrived broken.").await;
    remember(&site, &key, "n1", "Heating", "The heating is serviced every May.").await;
    let path = format!("{}/api/v1/documents/{gone}", site.app.url);
    let deleted = client().delete(path).bearer_auth(key.reveal()).send().await.expect("an answer");
    assert!(deleted.status().is_success(), "{}", deleted.status());
    let mut resumed = Stream::of(&site.app, PATH, &key, Some(&place)).await;
    assert!(resumed.has("\"deleted\"", SOON).await && resumed.has(&id, SOON).await, "{}", resumed.1);
    assert!(!resumed.1.contains("resync"), "{}", resumed.1);
    let (documents, last) = told(&resumed);
    let of = |id: &str| documents.iter().rfind(|event| event["id"] == id).expect("an event")["status"].clone();
    assert_eq!((of(&id), of(&gone)), (json!("completed"), json!("deleted")));
    let mut again = Stream::of(&site.app, PATH, &key, Some(&last)).await;
    assert!(!again.has("event:", Duration::from_millis(700)).await, "nothing twice: {}", again.1);

    let mut lost = Stream::of(&site.app, PATH, &key, Some("0190-nowhere-99")).await;
    assert!(lost.has("resync", SOON).await, "{}", lost.1);
}

/// S17.
#[tokio::test(flavor = "multi_thread")]
async fn only_readers_listen_and_a_slow_one_is_told_to_load_everything() {
    let site = Site::new().await;
    for scopes in [&[Scope::Agent][..], &[Scope::Write]] {
        let key = site.key(scopes).await;
        assert_eq!(site.ask("GET", PATH, Some(&key)).await.0, 403, "{scopes:?}");
    }
    assert_eq!(site.ask("GET", PATH, None).await.0, 401);

    let key = site.key(&[Scope::Read, Scope::Write]).await;
    let mut stream = Stream::of(&site.app, PATH, &key, None).await;
    assert!(stream.has("welcome", SOON).await);
    let (_, place) = told(&stream);
    // Another process says that it cannot name all that changed: so many notices that the ring turns.
    let relay = tokio::spawn(store::notices::relay(site.world.env.db.clone()));
    let mut conn = site.world.conn().await;
    let listening =
        "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%'";
    let listens = wait_until(SOON, async || {
        sqlx::query_scalar::<_, i64>(listening).fetch_one(&mut *conn).await.is_ok_and(|n| n > 0)
    });
    assert!(listens.await, "the server does not listen");
    site.world.env.db.bus().publish(domain::Notice::resync("documents"));
    assert!(stream.has("resync", SOON).await, "{}", stream.1);
    let mut resumed = Stream::of(&site.app, PATH, &key, Some(&place)).await;
    assert!(resumed.has("resync", SOON).await, "it is told of it, too: {}", resumed.1);
    relay.abort();
}
