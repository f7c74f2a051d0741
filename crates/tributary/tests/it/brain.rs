//! `POST /internal/embed`: one Tributary makes the vectors of another one, which has `EMBEDDER=brain`.

use std::time::Duration;

use domain::{Clock, Scope, Secret};
use engine::lanes;
use reqwest::{RequestBuilder, Url};
use serde_json::{Value, json};
use testkit::{World, cluster, wait_until};

use crate::app::{App, Folder, client, command, free_port};

const SECRET: &str = "brain-canary-7f3a";

/// A server with its own database, and these settings.
struct Server {
    world: World,
    app: App,
    port: u16,
    folder: Folder,
}

impl Server {
    async fn new(flags: &[&str]) -> Self {
        let world = World::with_flags(cluster::cloned(), Clock::System, flags).await;
        let (folder, port) = (Folder::new(), free_port());
        let app = Self::start(&world, &folder, port, flags).await;
        Self { world, app, port, folder }
    }

    async fn start(world: &World, folder: &Folder, port: u16, flags: &[&str]) -> App {
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", &world.database.url).env("LOG", "debug");
        App::start(serve, &[&["serve"], flags].concat(), port).await
    }

    fn embed(&self) -> RequestBuilder {
        client().post(format!("{}/internal/embed", self.app.url))
    }

    async fn key(&self) -> Secret {
        self.world.caller(self.world.tenant_id, &[Scope::Read, Scope::Write]).await.1
    }
}

async fn sent(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.expect("an answer");
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_makes_vectors_for_those_who_know_the_secret() {
    let server = Server::new(&["--brain-api-secret", SECRET]).await;
    let asked = |body: &Value| server.embed().bearer_auth(SECRET).json(body);
    let texts = json!({ "texts": ["The parcel arrived broken.", "Grüße aus 東京 🚚"] });
    let (status, answer) = sent(asked(&texts)).await;
    assert_eq!((status, &answer["model"], &answer["dim"]), (200, &json!("fast_256"), &json!(256)), "{answer}");
    let vectors = answer["embeddings"].as_array().expect("vectors");
    assert_eq!(vectors.len(), 2);
    for vector in vectors {
        let numbers: Vec<f64> = vector.as_array().expect("numbers").iter().filter_map(Value::as_f64).collect();
        let length = numbers.iter().map(|n| n * n).sum::<f64>().sqrt();
        assert!(numbers.len() == 256 && (length - 1.0).abs() < 1e-3, "{} numbers, {length} long", numbers.len());
    }

    let many = vec!["a"; 257];
    let long = "word ".repeat(180_000);
    let huge = "x".repeat(2 << 20);
    for (body, expected) in [
        (json!({ "texts": [] }), 400),
        (json!({ "texts": ["a", ""] }), 400),
        (json!({ "texts": ["a\0b"] }), 400),
        (json!({ "texts": "a" }), 400),
        (json!({ "texts": [7] }), 400),
        (json!({ "texts": ["a"], "canary": 1 }), 400),
        (json!({}), 400),
        (json!({ "texts": many }), 413),
        (json!({ "texts": [long] }), 413),
        (json!({ "texts": [huge] }), 413),
    ] {
        let (status, problem) = sent(asked(&body)).await;
        let begins: String = body.to_string().chars().take(40).collect();
        assert_eq!(status, expected, "{begins}: {problem}");
        assert!(problem["detail"].is_string() && !problem.to_string().contains("canary"), "{begins}: {problem}");
    }
    assert_eq!(sent(server.embed().bearer_auth(SECRET).body("no JSON")).await.0, 400);

    let key = server.key().await;
    for wrong in [server.embed(), server.embed().bearer_auth("x"), server.embed().bearer_auth(key.reveal())] {
        let (status, problem) = sent(wrong.json(&texts)).await;
        assert_eq!((status, problem["title"].is_string()), (401, true), "{problem}");
    }
    let mut guessed = 0;
    while sent(server.embed().bearer_auth(format!("guess {guessed}")).json(&texts)).await.0 != 429 {
        guessed += 1;
        assert!(guessed < 100, "guesses are never refused");
    }
    assert!(!server.app.printed().contains(SECRET), "the secret is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_secret_there_is_no_such_route() {
    let server = Server::new(&[]).await;
    for request in [server.embed(), server.embed().bearer_auth(""), server.embed().bearer_auth("x")] {
        let (status, problem) = sent(request.json(&json!({ "texts": ["a"] }))).await;
        assert_eq!((status, &problem["type"]), (404, &json!("/problems/not-found")), "{problem}");
    }
}

/// F34: two servers. While the brain is away, documents are found by keyword; they get their vectors when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn one_tributary_is_the_brain_of_another() {
    let Server { world, app, port, folder } = Server::new(&["--brain-api-secret", SECRET]).await;
    let url = app.url.clone();
    let flags = ["--embedder", "brain", "--boots-brain-url", &url, "--brain-api-secret", SECRET];
    let office = Server::new(&[&flags[..], &["--embed-model", "fast_256", "--embed-dim", "256"]].concat()).await;
    let key = office.key().await;
    let remember = async |text: &str| {
        let door = client().post(format!("{}/api/v1/documents", office.app.url)).bearer_auth(key.reveal());
        sent(door.json(&json!({ "text": text }))).await.1["memory"].clone()
    };
    let found = async |query: &str, mode: &str| {
        let address = format!("{}/api/v1/search", office.app.url);
        let address = Url::parse_with_params(&address, [("q", query), ("mode", mode)]).expect("an address");
        let (status, answer) = sent(client().get(address).bearer_auth(key.reveal())).await;
        assert_eq!(status, 200, "{answer}");
        answer["hits"][0]["snippet"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(remember("The parcel arrived broken and the customer wants her money back.").await, "remembered");
    assert_eq!(remember("The heating of the office is serviced every October.").await, "remembered");
    let by_meaning = found("refund for damaged goods", "vector").await;
    assert!(by_meaning.contains("parcel"), "by the brain's vectors: {by_meaning:?}");

    drop(app);
    assert_eq!(remember("The ferry to the lighthouse leaves at noon.").await, "pending_embed");
    assert!(found("ferry", "hybrid").await.contains("lighthouse"), "by keyword");
    let n_pending = async || {
        let sql = "select count(*) from source_documents where embedding_model is null";
        sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut *office.world.conn().await).await.expect("a number")
    };
    assert_eq!(n_pending().await, 1);
    let _brain = Server::start(&world, &folder, port, &["--brain-api-secret", SECRET]).await;
    let is_done = wait_until(Duration::from_secs(60), async || {
        office.world.run_lanes(&lanes::ALL).await;
        n_pending().await == 0
    });
    assert!(is_done.await, "it is not completed");
    // A server whose question was not answered asks no other one for ten seconds.
    let is_found = wait_until(Duration::from_secs(20), async || {
        found("when does the boat to the lighthouse sail", "vector").await.contains("ferry")
    });
    assert!(is_found.await, "by the brain's vectors");
}
