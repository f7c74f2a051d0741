//! A memory's model and its move to another one, from outside: on the command line and over the API.

use domain::Scope;
use serde_json::json;
use testkit::embedder::FakeEmbedder;

use crate::app::{client, command, run};
use crate::http::Site;

#[tokio::test(flavor = "multi_thread")]
async fn a_move_is_priced_begun_watched_and_cancelled_from_outside() {
    let (site, fake) = (Site::new().await, FakeEmbedder::start(16).await);
    let key = site.key(&[Scope::Read, Scope::Write]).await;
    // The settings of the command describe a service beside `fast`; those of the server do not.
    let ask = |args: &[&str]| {
        let mut asked = command(&site.folder.0, 7171);
        asked.env("DATABASE_URL", &site.world.database.url).env("EMBED_BASE_URL", fake.url());
        asked.env("EMBED_MODEL", "fake").env("EMBED_DIM", "16").env("EMBED_PRICE_PER_MILLION", "2");
        run(asked.args(args))
    };
    let (output, _, error) = ask(&["memory", "reembed", "--to", "fake"]);
    assert!(!output.status.success() && error.contains("nothing has been remembered yet"), "{error}");
    let note = json!({ "text": "The spare key hangs behind the red door.", "external_id": "key" });
    let sent = client().post(format!("{}/api/v1/documents", site.app.url)).bearer_auth(key.reveal()).json(&note);
    assert_eq!(sent.send().await.expect("an answer").status(), 201);

    let (_, said, error) = ask(&["memory", "status"]);
    assert!(said.contains("default") && said.contains("fast_256") && said.contains("as EMBEDDER names it"), "{said}");
    // The models that run in the process are there if set-up has fetched them.
    let described =
        error.lines().find(|line| line.contains("EMBEDDER names fast_256; the settings describe fast_256, "));
    assert!(described.is_some_and(|line| line.ends_with(", fake_16")), "{error}");
    for (args, expected) in [
        (&["memory", "reembed"][..], "this memory uses the model fast_256 already"),
        (&["memory", "reembed", "--to", "nonsense"], "there is fast_256, "),
        (&["memory", "cancel"], "this memory does not move"),
        (&["memory", "reembed", "--to", "fake"], "there is no terminal on which to ask"),
    ] {
        let (output, _, error) = ask(args);
        assert!(!output.status.success() && error.contains(expected), "{args:?}: {error}");
    }
    let (output, said, error) = ask(&["memory", "reembed", "--to", "fake", "--yes"]);
    assert!(output.status.success() && said.contains("moves to fake_16"), "{said} {error}");
    assert!(error.contains("1 memory will move from fast_256 to fake_16: 1 chunk gets a new vector, about 10 tokens"));
    let (_, said, _) = ask(&["memory", "status"]);
    assert!(said.contains("moves from fast_256 to fake_16: 0 chunks embedded, about 1 left"), "{said}");

    let (status, answer) = site.ask("GET", "/api/v1/memory", Some(&key)).await;
    let memory = &answer["memories"][0];
    assert_eq!((status, &memory["model"], &memory["moving"]["to"]), (200, &json!("fast_256"), &json!("fake_16")));
    assert_eq!(memory["moving"]["state"], "embedding");
    let askable = answer["askable"].as_array().expect("models");
    assert!(askable.contains(&json!("fast_256")) && !askable.contains(&json!("fake_16")), "{askable:?}");
    let (status, _) = site.ask("GET", "/api/v1/search?q=spare+key", Some(&key)).await;
    assert_eq!(status, 200);
    assert_eq!(site.ask("GET", "/api/v1/memory/reembed?to=nonsense", Some(&key)).await.0, 400);
    let (status, estimate) = site.ask("GET", "/api/v1/memory/reembed", Some(&key)).await;
    assert_eq!((status, &estimate["chunks"], &estimate["cost_micros"]), (200, &json!(0), &json!(0)));
    assert_eq!(site.ask("POST", "/api/v1/memory/reembed", Some(&key)).await.0, 409);
    let reader = site.key(&[Scope::Read]).await;
    assert_eq!(site.ask("DELETE", "/api/v1/memory/reembed", Some(&reader)).await.0, 403);

    let (status, answer) = site.ask("DELETE", "/api/v1/memory/reembed", Some(&key)).await;
    assert_eq!((status, &answer["memories"][0]["moving"]["state"]), (202, &json!("cancelling")));
    site.world.run_upkeep().await;
    let (_, answer) = site.ask("GET", "/api/v1/memory", Some(&key)).await;
    let memory = &answer["memories"][0];
    assert_eq!(
        (&memory["model"], &memory["moving"], &memory["is_chosen"]),
        (&json!("fast_256"), &json!(null), &json!(true))
    );
    assert_eq!(site.ask("DELETE", "/api/v1/memory/reembed", Some(&key)).await.0, 404);
    assert!(fake.calls().is_empty(), "nobody asked it for a vector");
}
