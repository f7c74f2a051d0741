//! Recordings: fetched once from the address that an event names, kept, and handed to agents.

use connectors::Outside;
use connectors::outside::{FetchError, Limits, Lookup};
use domain::{ActivityId, Caller, Secret};
use engine::Env;
use engine::channels::NewChannel;
use engine::enrich::{Failure, Processors, Subject};
use engine::recordings::{self, Error};
use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use testkit::recordings::{Manner, wav};
use testkit::{Canary, FakeRecordings, FakeSpeech, World, config};
use uuid::Uuid;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A world that may fetch from one server beside what is public.
struct Studio {
    world: World,
    env: Env,
    server: FakeRecordings,
}

impl Studio {
    async fn new() -> Self {
        let (world, server) = (World::new().await, FakeRecordings::start(1).await);
        let allow = [server.network().parse().expect("a network")];
        let outside = Outside::new(&allow, Lookup::System, Limits { bytes: 100_000, ..Limits::default() });
        let env = Env { outside: outside.expect("a client"), ..world.env.clone() };
        Self { world, env, server }
    }

    async fn activity(&self, raw_data: Value, metadata: Value, channel: Option<Uuid>) -> ActivityId {
        let id = sqlx::query_scalar(
            "insert into activities (tenant_id, type, raw_data, metadata, provider_id) values ($1, 'call', $2, $3, $4) returning id",
        )
        .bind(self.world.tenant_id.0)
        .bind(raw_data)
        .bind(metadata)
        .bind(channel)
        .fetch_one(&mut *self.world.conn().await)
        .await;
        ActivityId(id.expect("an activity"))
    }

    async fn call(&self, url: &str) -> ActivityId {
        self.activity(json!({ "source_type": "url", "content": url }), json!({}), None).await
    }

    async fn open(&self, id: ActivityId) -> Result<recordings::Recording, Error> {
        recordings::open(&self.env, self.world.tenant_id, id).await
    }

    async fn channel(&self, provider: &str) -> Uuid {
        let new = NewChannel {
            provider: provider.to_owned(),
            name: Uuid::now_v7().to_string(),
            secret: Some(Secret::new(TOKEN)),
            ..NewChannel::default()
        };
        engine::channels::add(&self.env, &Caller::local("test", self.world.tenant_id, false), new)
            .await
            .expect("a channel")
            .id
            .0
    }

    async fn rows(&self) -> i64 {
        let sql = "select count(*) from tributary.activity_recordings";
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a count")
    }
}

#[tokio::test]
async fn a_recording_is_fetched_once_and_kept() {
    let studio = Studio::new().await;
    let id = studio.call(&studio.server.url("/RE1")).await;
    let (first, second) = tokio::join!(studio.open(id), studio.open(id));
    let (first, second) = (first.expect("a recording"), second.expect("a recording"));
    assert_eq!(first, second, "twice at once is one");
    assert_eq!((first.bytes, first.content_type.as_str()), (wav(1).len() as u64, "audio/wav"));
    let visits = studio.server.visits().len();
    studio.server.go_away().await;
    assert_eq!(studio.open(id).await.expect("it is kept"), first);
    assert_eq!((studio.server.visits().len(), studio.rows().await), (visits, 1));

    let audio = recordings::audio(&studio.env, studio.world.tenant_id, &first).await.expect("an answer").expect("it");
    assert_eq!((audio.file.bytes, audio.content_type), (first.bytes, Some("audio/wav")));
    let pieces: Vec<bytes::Bytes> = audio.file.pieces().try_collect().await.expect("its bytes");
    assert_eq!(pieces.concat(), wav(1));

    // Named by its row, it is no rubbish; without the activity it is.
    studio.env.clock.advance(chrono::TimeDelta::hours(25));
    engine::blobs::collect(&studio.env).await.expect("collected");
    assert!(studio.env.blobs.get(studio.world.tenant_id, &first.key).await.expect("an answer").is_some());
    let mut owner = store::bench::administrator(&studio.world.database.admin).await.expect("the owner");
    sqlx::query("delete from public.activities where id = $1").bind(id.0).execute(&mut owner).await.expect("deleted");
    engine::blobs::collect(&studio.env).await.expect("collected");
    assert!(studio.env.blobs.get(studio.world.tenant_id, &first.key).await.expect("an answer").is_none());
    assert_eq!(studio.rows().await, 0);
}

#[tokio::test]
async fn what_is_no_recording_is_not_kept_and_says_why() {
    let studio = Studio::new().await;
    for (manner, kept) in [
        (Manner::Gives("text/html", b"RIFF\0\0\0\0WAVEfmt "), Some("audio/wav")),
        (Manner::Gives("audio/mpeg; x=y", b"\0\0"), Some("audio/mpeg")),
        (Manner::Gives("audio/x-strange", b"\0\0"), Some("application/octet-stream")),
        (Manner::Gives("text/html", b"<script>alert(1)</script>"), None),
        (Manner::Gives("application/json", b"{}"), None),
        (Manner::Gives("image/svg+xml", b"<svg/>"), None),
        (Manner::Gives("audio/wav", b""), None),
        (Manner::Status(404, "canary"), None),
        (Manner::Endless, None),
    ] {
        let id = studio.call(&studio.server.url("/RE1")).await;
        studio.server.answer_next(std::slice::from_ref(&manner));
        let before = studio.rows().await;
        let opened = studio.open(id).await;
        assert_eq!(opened.as_ref().ok().map(|recording| recording.content_type.as_str()), kept, "{manner:?}");
        assert_eq!(studio.rows().await - before, i64::from(kept.is_some()), "{manner:?}");
        if let Err(error) = opened {
            let failure = Failure::from(error);
            assert_eq!(failure.kind, "DownloadError", "{manner:?}");
            assert!(!failure.message.contains("canary") && !failure.message.contains("127."), "{}", failure.message);
        }
    }
    studio.server.answer_next(&[Manner::Status(503, "")]);
    let id = studio.call(&studio.server.url("/RE1")).await;
    let failure = Failure::from(studio.open(id).await.expect_err("a refusal"));
    assert_eq!(failure.message, "the recording could not be fetched: its server answered 503");

    let text =
        studio.activity(json!({ "source_type": "text", "content": studio.server.url("/") }), json!({}), None).await;
    for id in [text, ActivityId::new()] {
        assert!(matches!(studio.open(id).await, Err(Error::None)));
    }
    let id = studio.call(&studio.server.url("/RE1")).await;
    let other = studio.world.other_tenant("somebody else").await;
    assert!(matches!(recordings::open(&studio.env, other, id).await, Err(Error::None)), "S17");
}

/// S9.
#[tokio::test]
async fn no_event_sends_us_to_ourselves() {
    let (studio, canary) = (Studio::new().await, Canary::start().await);
    for url in [
        "http://127.0.0.1:{}/",
        "http://localhost:{}/a.wav",
        "http://[::1]:{}/",
        "http://2130706433:{}/",
        "http://0:{}/",
    ] {
        let id = studio.call(&url.replace("{}", &canary.port.to_string())).await;
        assert!(matches!(studio.open(id).await, Err(Error::NotFetched(FetchError::NotPublic))), "S9: {url}");
    }
    for url in ["", "file:///etc/passwd", "not a url"] {
        let id = studio.call(url).await;
        assert!(matches!(studio.open(id).await, Err(Error::NotFetched(FetchError::Malformed))), "S9: {url}");
    }
    assert_eq!((canary.visits(), studio.rows().await), (0, 0));
}

#[tokio::test]
async fn twilios_recordings_are_asked_for_with_the_channels_own_token_and_nobody_elses() {
    let studio = Studio::new().await;
    studio.server.want("Basic QUMxOjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVm");
    let (twilio, generic) = (studio.channel("twilio").await, studio.channel("generic").await);
    let raw = json!({ "source_type": "url", "content": studio.server.url("/RE1"), "format": "audio/wav" });
    let account = json!({ "account_sid": "AC1" });
    let id = studio.activity(raw.clone(), account.clone(), Some(twilio)).await;
    let elsewhere = FakeRecordings::start(2).await;
    studio.server.answer_next(&[Manner::SendsOn(302, elsewhere.url("/media"))]);
    assert!(matches!(studio.open(id).await, Err(Error::NotFetched(FetchError::NotPublic))), "that one is not allowed");
    assert_eq!(studio.open(id).await.expect("a recording").content_type, "audio/wav");

    let without = studio.server.visits().len();
    for (metadata, channel) in [
        (account.clone(), Some(generic)),
        (account.clone(), None),
        (account.clone(), Some(Uuid::now_v7())),
        (json!({}), Some(twilio)),
        (json!({ "account_sid": "AC1:x\r\n" }), Some(twilio)),
    ] {
        let id = studio.activity(raw.clone(), metadata, channel).await;
        let refused = studio.open(id).await.expect_err("a refusal");
        assert!(refused.to_string().ends_with("wants other credentials, or any (401)"), "{refused}");
    }
    assert!(studio.server.visits()[without..].iter().all(|visit| visit.authorization.is_none()));
}

#[tokio::test]
async fn a_call_becomes_a_transcript() {
    let (studio, speech) = (Studio::new().await, FakeSpeech::start().await);
    let id = studio.call(&studio.server.url("/RE1")).await;
    let kept = studio.open(id).await.expect("a recording");
    let audio = recordings::audio(&studio.env, studio.world.tenant_id, &kept).await.expect("an answer").expect("it");
    let config = config(&["--transcribe-base-url", &speech.url(), "--transcribe-api-key", "sk-1"]);
    let processors = Processors::new(&config, &studio.env.http).expect("processors");
    let raw_data = json!({ "source_type": "url", "content": studio.server.url("/RE1"), "subject": "Voicemail" });
    let done = processors.process(&Subject { r#type: "call", raw_data: &raw_data }, Some(&audio)).await.expect("done");
    let said = "Hello, this is Ann. Please call me back.";
    assert_eq!(done, json!({ "transcript": said, "summary": format!("Voicemail: {said}"), "facts": [] }));
    let calls = speech.calls();
    assert_eq!((calls[0].file.len() as u64, calls[0].file_name.as_str()), (kept.bytes, "recording.wav"));
}
