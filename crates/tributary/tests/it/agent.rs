//! `tributary agent` as people run it: a program on a device, against a server elsewhere, with services that hear and read.

use std::time::Duration;

use domain::{Scope, Secret};
use engine::intake::providers::twilio::sign as sign_twilio;
use rustix::process::Signal;
use serde_json::{Value, json};
use store::{keys, people};
use testkit::chat::{self, FakeChat};
use testkit::recordings::{self, FakeRecordings};
use testkit::speech::{self, FakeSpeech};
use testkit::{World, stays_true, wait_until};

use crate::app::{App, Folder, command, free_port, run};
use crate::browser::Browser;
use crate::channels::{House, PUBLIC_URL, TOKEN, form, target};

const SOON: Duration = Duration::from_secs(20);

/// A server, somebody's device with an agent, and the services it asks.
struct Office {
    house: House,
    recordings: FakeRecordings,
    speech: FakeSpeech,
    chat: FakeChat,
    key: Secret,
    device: Folder,
}

impl Office {
    async fn new(last: u8) -> Self {
        let (recordings, speech, chat) =
            (FakeRecordings::start(last).await, FakeSpeech::start().await, FakeChat::start().await);
        let house = House::with(World::now().await, &[("OUTBOUND_ALLOW", &recordings.network())]).await;
        let mut conn = house.world.conn().await;
        let tenant_id = house.world.tenant_id;
        let ann = people::ensure(&mut conn, tenant_id, "ann@office.test").await.expect("a person");
        let (_, key) = keys::create(&mut conn, tenant_id, Some(ann), "laptop", &[Scope::Agent]).await.expect("a key");
        drop(conn);
        Self { house, recordings, speech, chat, key, device: Folder::new() }
    }

    fn command(&self) -> std::process::Command {
        let mut command = command(&self.device.0, free_port());
        command.env("TRIBUTARY_KEY", self.key.reveal()).env("TRIBUTARY_URL", &self.house.app.url);
        command.env("TRANSCRIBE", "service").env("TRANSCRIBE_BASE_URL", self.speech.url());
        command.env("TRANSCRIBE_MODEL", "whisper-1");
        command.env("LLM", "anthropic").env("LLM_BASE_URL", self.chat.url(true)).env("LLM_MODEL", "reader-1");
        command.env("LLM_API_KEY", "sk-reader").env("DRAIN_SECS", "1");
        command
    }

    async fn start(&self) -> App {
        self.start_as(self.command()).await
    }

    async fn start_as(&self, command: std::process::Command) -> App {
        let agent = App::spawn(command, &["agent", "--device", "laptop"], 0);
        let is_there =
            async || self.house.number("select count(*) from crm_processing_nodes where status = 'ready'").await == 1;
        assert!(wait_until(SOON, is_there).await, "{}", agent.printed());
        agent
    }

    /// A signed callback of Twilio's: a call was recorded, and the recording lies there.
    async fn call(&self, channel: &store::channels::Secrets, sid: &str, url: &str) -> String {
        let fields = [
            ("AccountSid", "AC1"),
            ("CallSid", "CA1"),
            ("RecordingSid", sid),
            ("RecordingStatus", "completed"),
            ("RecordingUrl", url),
            ("RecordingDuration", "1"),
        ];
        let (target, body) = (target(channel), form(&fields));
        let signature = sign_twilio(&Secret::new(TOKEN), &format!("{PUBLIC_URL}{target}"), body.as_bytes());
        let request =
            self.house.post(&target).header("accept", "application/json").header("x-twilio-signature", signature);
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 202);
        answer.json::<Value>().await.expect("JSON")["id"].as_str().expect("an id").to_owned()
    }

    async fn row(&self, id: &str) -> Value {
        sqlx::query_scalar("select to_jsonb(a) from activities a where id = $1::uuid")
            .bind(id)
            .fetch_one(&mut *self.house.world.conn().await)
            .await
            .expect("an activity")
    }

    async fn becomes(&self, id: &str, status: &str) -> Value {
        wait_until(SOON, async || self.row(id).await["processing_status"] == status).await;
        self.row(id).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_becomes_a_card_with_its_words_while_somebody_watches() {
    let office = Office::new(41).await;
    let words = "Hello, this is Ann of Acme. Please send the offer over 1,200 euros by Friday.";
    office.speech.answer(speech::Manner::Heard(words));
    office.chat.answer(chat::Manner::Says(
        json!({ "summary": "Ann wants the offer.", "facts": ["The offer is due on Friday."] }),
    ));
    let (_, twilio) = office.house.twilio().await;
    let browser = Browser::signed_in(&office.house.app, &office.house.world).await;
    browser.goto(&format!("{}/inbox", office.house.app.url)).await;
    browser.script("window.same = 'page'").await;

    // Nobody is there yet who could hear it, and the card says so.
    let id = office.call(&twilio, "RE1", &office.recordings.url("/2010/RE1")).await;
    assert!(browser.shows("No agent is online", SOON).await, "{}", browser.text().await);
    browser.photograph("feed-waiting").await;
    let _agent = office.start().await;
    assert!(browser.shows("Ann wants the offer.", SOON).await, "{}", browser.text().await);
    browser.click("[data-key=transcript] summary").await;
    assert!(browser.shows("The offer is due on Friday.", SOON).await, "{}", browser.text().await);
    assert_eq!(browser.script("return window.same").await, "page", "the page was loaded again");
    let transcript =
        browser.script("return document.querySelector('details .transcript, details pre')?.textContent").await;
    assert!(transcript.as_str().is_some_and(|text| text.contains("offer over 1,200 euros")), "{transcript}");
    let heard = browser
        .script("const a = document.querySelector('audio'); a.load(); return new URL(a.currentSrc || a.src).pathname")
        .await;
    assert_eq!(heard, format!("/activities/{id}/recording"));
    let can_play = "return document.querySelector('audio').readyState >= 1 && document.querySelector('audio').duration";
    assert!(
        wait_until(SOON, async || browser.script(can_play).await.as_f64().is_some_and(|secs| secs > 0.5)).await,
        "the browser cannot play it"
    );
    browser.photograph("feed-completed").await;

    let row = office.row(&id).await;
    assert_eq!((&row["processing_status"], &row["processed_data"]["transcript"]), (&json!("completed"), &json!(words)));
    assert_eq!(office.recordings.visits().len(), 1, "fetched once, for the agent and for the page");
    assert_eq!(office.speech.calls().len(), 1);
    // The provider's own ids stay beside the result.
    assert!(row["metadata"]["recording_sid"].is_string() || row["metadata"]["RecordingSid"].is_string(), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_agent_gives_back_what_it_cannot_finish() {
    let office = Office::new(42).await;
    office.speech.answer(speech::Manner::Slow(Duration::from_secs(60)));
    let (_, twilio) = office.house.twilio().await;
    let mut agent = office.start().await;
    let id = office.call(&twilio, "RE1", &office.recordings.url("/RE1")).await;
    assert!(wait_until(SOON, async || office.speech.calls().len() == 1).await, "{}", agent.printed());
    assert_eq!(office.row(&id).await["processing_status"], "processing");
    agent.signal(Signal::TERM);
    let ended = agent.ended_within(Duration::from_secs(10)).await.expect("it ends");
    assert!(ended.success(), "{}", agent.printed());
    let row = office.row(&id).await;
    assert_eq!((&row["processing_status"], &row["locked_by"]), (&json!("raw"), &Value::Null));
    assert!(row["metadata"].get("recovery_count").is_none(), "it was given back, not taken: {row}");
    assert_eq!(office.house.number("select count(*) from crm_processing_nodes where status = 'offline'").await, 1);

    // Another one finishes it.
    office.speech.answer(speech::Manner::Heard("hello"));
    office.chat.answer(chat::Manner::Says(json!({ "summary": "A greeting.", "facts": [] })));
    let agent = office.start().await;
    let row = office.becomes(&id, "completed").await;
    assert_eq!(
        (&row["processed_data"]["summary"], &row["lock_epoch"]),
        (&json!("A greeting."), &json!(2)),
        "{}",
        agent.printed()
    );
}

/// S9.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_processed_says_why_and_reaches_no_private_address() {
    let office = Office::new(43).await;
    let canary = testkit::canary::Canary::start().await;
    let (_, twilio) = office.house.twilio().await;
    let agent = office.start().await;
    office.recordings.answer(recordings::Manner::Status(404, "gone"));
    let gone = office.call(&twilio, "RE1", &office.recordings.url("/gone")).await;
    let row = office.becomes(&gone, "failed").await;
    assert_eq!(row["metadata"]["error"]["type"], "DownloadError", "{row}\n{}", agent.printed());
    assert_eq!(
        (&row["metadata"]["error"]["agent_id"], &row["metadata"]["call_sid"]),
        (&json!("laptop"), &json!("CA1")),
        "its own ids stay: {row}"
    );

    for (nth, url) in [
        format!("http://127.0.0.1:{}/", canary.port),
        format!("http://[::ffff:127.0.0.1]:{}/", canary.port),
        format!("http://2130706433:{}/", canary.port),
        format!("http://localhost:{}/", canary.port),
        "http://169.254.169.254/latest/meta-data/".into(),
    ]
    .iter()
    .enumerate()
    {
        let id = office.call(&twilio, &format!("RP{nth}"), url).await;
        let row = office.becomes(&id, "failed").await;
        assert_eq!(row["metadata"]["error"]["type"], "DownloadError", "S9: {url}: {row}");
        assert!(!row["metadata"]["error"].to_string().contains("127.0.0.1"), "{row}");
    }
    assert_eq!(canary.visits(), 0, "S9: a private address was asked");

    office.recordings.answer(recordings::Manner::Well);
    office.speech.answer(speech::Manner::Status(400, "", r#"{"error":{"code":"unsupported_format"}}"#));
    let unheard = office.call(&twilio, "RE3", &office.recordings.url("/RE3")).await;
    let row = office.becomes(&unheard, "failed").await;
    assert_eq!(row["metadata"]["error"]["type"], "TranscriptionError", "{row}");
    office.speech.answer(speech::Manner::Heard("hello there"));
    office.chat.answer(chat::Manner::Refuses);
    let unread = office.call(&twilio, "RE4", &office.recordings.url("/RE4")).await;
    let row = office.becomes(&unread, "failed").await;
    assert_eq!(row["metadata"]["error"]["type"], "LLMError", "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_does_what_the_nodes_page_says() {
    let office = Office::new(44).await;
    office.speech.answer(speech::Manner::Slow(Duration::from_secs(120)));
    let (_, twilio) = office.house.twilio().await;
    // Without a reader too: what takes no time is not counted, but a call does.
    let mut command = office.command();
    command.env("LLM", "none");
    let _agent = office.start_as(command).await;
    let set_to = async |enabled: bool, concurrency: i32| {
        sqlx::query("update crm_processing_nodes set enabled = $1, concurrency = $2")
            .bind(enabled)
            .bind(concurrency)
            .execute(&mut *office.house.world.conn().await)
            .await
            .expect("set");
    };
    set_to(false, 3).await;
    // A heartbeat reads it. It beats every ten seconds.
    let begun = office.house.number("select extract(epoch from clock_timestamp())::bigint").await;
    let last = "select coalesce(max(extract(epoch from last_heartbeat)), 0)::bigint from crm_processing_nodes";
    assert!(wait_until(SOON, async || office.house.number(last).await > begun).await, "no heartbeat comes");
    for nth in 0..5 {
        office.call(&twilio, &format!("RE{nth}"), &office.recordings.url("/RE")).await;
    }
    let in_hand =
        async || office.house.number("select count(*) from activities where processing_status = 'processing'").await;
    let length = Duration::from_secs(2); // it claims within a second of waking
    assert!(stays_true(length, async || in_hand().await == 0).await, "it is switched off, and claims");
    set_to(true, 3).await;
    assert!(wait_until(SOON, async || in_hand().await == 3).await, "it is switched on, and has {}", in_hand().await);
    assert!(stays_true(length, async || in_hand().await == 3).await, "it takes more than it was told");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_cannot_hear_leaves_calls_to_others() {
    let office = Office::new(46).await;
    let (_, twilio) = office.house.twilio().await;
    let call = office.call(&twilio, "RE1", &office.recordings.url("/RE1")).await;
    let mut deaf = office.command();
    deaf.env_remove("TRANSCRIBE_BASE_URL").env("LLM", "none");
    let agent = App::spawn(deaf, &["agent", "--device", "deaf"], 0);
    let note = "insert into activities (tenant_id, type, raw_data) values ($1, 'note', '{\"source_type\":\"text\",\"content\":\"hello\"}') returning id::text";
    let note: String = sqlx::query_scalar(note)
        .bind(office.house.world.tenant_id.0)
        .fetch_one(&mut *office.house.world.conn().await)
        .await
        .expect("a note");
    assert_eq!(office.becomes(&note, "completed").await["processing_status"], "completed", "{}", agent.printed());
    let row = office.row(&call).await;
    assert_eq!((&row["processing_status"], &row["lock_epoch"]), (&json!("raw"), &json!(0)), "{row}");
}

/// I7.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_good_key_says_what_to_do() {
    let office = Office::new(45).await;
    let (output, _, stderr) = run(office.command().env_remove("TRIBUTARY_KEY").arg("agent"));
    assert!(!output.status.success() && stderr.contains("key create laptop --scopes agent"), "{stderr}");
    let (output, _, stderr) = run(office.command().env("TRIBUTARY_KEY", "trb_nobody").arg("agent"));
    assert!(!output.status.success() && stderr.contains("does not know this key"), "{stderr}");
    assert!(!stderr.contains("trb_nobody"), "I7: {stderr}");
    let (_, read_only) = office.house.world.caller(office.house.world.tenant_id, &[Scope::Read]).await;
    let (output, _, stderr) = run(office.command().env("TRIBUTARY_KEY", read_only.reveal()).arg("agent"));
    assert!(!output.status.success() && stderr.contains("scope `agent`"), "{stderr}");
}
