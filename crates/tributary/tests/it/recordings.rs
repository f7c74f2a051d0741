//! Recordings over HTTP: whole, in parts, for those who may hear them, and in words when they cannot be had.

use domain::{Scope, Secret};
use reqwest::Response;
use serde_json::{Value, json};
use testkit::recordings::{Manner, wav};
use testkit::{FakeRecordings, World};
use uuid::Uuid;

use crate::app::{App, Folder, client, command, free_port};

struct Studio {
    world: World,
    app: App,
    _folder: Folder,
    server: FakeRecordings,
}

impl Studio {
    async fn new() -> Self {
        let (world, folder, server, port) =
            (World::now().await, Folder::new(), FakeRecordings::start(1).await, free_port());
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", &world.database.url).env("OUTBOUND_ALLOW", server.network());
        serve.env("RECORDING_MAX_BYTES", "100000").env("LOG", "debug");
        let app = App::start(serve, &["serve"], port).await;
        Self { world, app, _folder: folder, server }
    }

    async fn activity(&self, raw_data: Value) -> Uuid {
        sqlx::query_scalar("insert into activities (tenant_id, type, raw_data) values ($1, 'call', $2) returning id")
            .bind(self.world.tenant_id.0)
            .bind(raw_data)
            .fetch_one(&mut *self.world.conn().await)
            .await
            .expect("an activity")
    }

    async fn call(&self) -> Uuid {
        self.activity(json!({ "source_type": "url", "content": self.server.url("/canary") })).await
    }

    async fn key(&self, scope: Scope) -> Secret {
        self.world.caller(self.world.tenant_id, &[scope]).await.1
    }

    async fn get(&self, path: &str, key: &Secret, headers: &[(&str, &str)]) -> Response {
        let mut request = client().get(format!("{}{path}", self.app.url)).bearer_auth(key.reveal());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.expect("an answer")
    }
}

fn header(answer: &Response, name: &str) -> String {
    answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_heard_from_the_beginning_and_from_anywhere() {
    let studio = Studio::new().await;
    let (id, sound) = (studio.call().await, wav(1));
    let (agent, reader) = (studio.key(Scope::Agent).await, studio.key(Scope::Read).await);
    let (api, page) = (format!("/api/v1/activities/{id}/recording"), format!("/activities/{id}/recording"));
    let whole = studio.get(&api, &agent, &[]).await;
    assert_eq!(whole.status(), 200);
    for (name, value) in [
        ("content-type", "audio/wav"),
        ("content-length", "16044"),
        ("content-disposition", "inline"),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; media-src 'self'; sandbox"),
    ] {
        assert_eq!(header(&whole, name), value, "{name}");
    }
    let etag = header(&whole, "etag");
    assert_eq!(whole.bytes().await.expect("a body"), sound);
    for path in [&api, &page] {
        for (range, status, place, part) in [
            ("bytes=0-3", 206, "bytes 0-3/16044", &sound[..4]),
            ("bytes=16000-", 206, "bytes 16000-16043/16044", &sound[16_000..]),
            ("bytes=-44", 206, "bytes 16000-16043/16044", &sound[16_000..]),
            ("bytes=0-1,4-5", 200, "", &sound),
        ] {
            let answer = studio.get(path, &reader, &[("range", range)]).await;
            assert_eq!(
                (answer.status().as_u16(), header(&answer, "content-range").as_str()),
                (status, place),
                "{range}"
            );
            assert_eq!(header(&answer, "content-length"), part.len().to_string(), "{range}");
            assert_eq!(answer.bytes().await.expect("a body"), part, "{range}");
        }
        let beyond = studio.get(path, &reader, &[("range", "bytes=16044-")]).await;
        assert_eq!((beyond.status().as_u16(), header(&beyond, "content-range").as_str()), (416, "bytes */16044"));
    }
    let same = studio.get(&api, &reader, &[("range", "bytes=0-3"), ("if-range", &etag)]).await;
    let other = studio.get(&api, &reader, &[("range", "bytes=0-3"), ("if-range", "\"other\"")]).await;
    assert_eq!((same.status(), other.status()), (206.try_into().expect("a status"), 200.try_into().expect("a status")));
    assert_eq!(studio.server.visits().len(), 1, "it was fetched more than once");
    let looked = client().head(format!("{}{api}", studio.app.url)).bearer_auth(reader.reveal()).send().await;
    assert_eq!(header(&looked.expect("an answer"), "content-length"), "16044");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_hear_it_is_told_so_and_so_is_why_there_is_nothing_to_hear() {
    let studio = Studio::new().await;
    let reader = studio.key(Scope::Read).await;
    let problem = async |id: Uuid, key: &Secret| {
        let answer = studio.get(&format!("/api/v1/activities/{id}/recording"), key, &[]).await;
        assert_eq!(header(&answer, "content-type"), "application/problem+json");
        let (status, text) = (answer.status().as_u16(), answer.text().await.expect("a body"));
        assert!(!text.contains("canary") && !text.contains("127.77"), "S13: {text}");
        let problem: Value = serde_json::from_str(&text).expect("a problem");
        (status, problem["detail"].as_str().unwrap_or_default().to_owned())
    };
    let id = studio.call().await;
    assert_eq!(problem(id, &studio.key(Scope::Write).await).await.0, 403);
    assert_eq!(problem(id, &Secret::new("trb_x")).await.0, 401);
    let other = studio.world.other_tenant("somebody else").await;
    let (_, stranger) = studio.world.caller(other, &[Scope::Service]).await;
    assert_eq!(problem(id, &stranger).await.0, 404, "S17");
    assert_eq!(studio.server.visits().len(), 0, "it was fetched for somebody who may not hear it");
    let text = studio.activity(json!({ "source_type": "text", "content": "hello" })).await;
    assert_eq!(problem(text, &reader).await.0, 404);
    assert_eq!(problem(Uuid::now_v7(), &reader).await.0, 404);
    for (manner, expected) in [
        (
            Manner::Status(401, "canary"),
            "the recording could not be fetched: its server wants other credentials, or any (401)",
        ),
        (Manner::Gives("text/html", b"<canary>"), "the file there is not a recording"),
        (Manner::Claims(100_001), "the recording could not be fetched: it is larger than 100000 bytes"),
    ] {
        studio.server.answer_next(&[manner]);
        assert_eq!(problem(id, &reader).await, (502, expected.to_owned()));
    }
    let home = studio.activity(json!({ "source_type": "url", "content": format!("{}/metrics", studio.app.url) })).await;
    assert_eq!(
        problem(home, &reader).await,
        (502, "the recording could not be fetched: its address is not public".into())
    );
    let printed = studio.app.printed();
    assert!(!printed.contains("canary"), "S13: an address is in the log:\n{printed}");
}
