//! Calls that are heard on this machine, with nothing configured: each ends as a transcript on its card, or says in words why not, and no crash loses one or
//! has a page heard twice.

use std::time::Duration;

use domain::{Clock, Scope, Secret};
use engine::channels::NewChannel;
use engine::intake::providers::twilio::sign as sign_twilio;
use futures_util::{StreamExt as _, stream};
use reqwest::StatusCode;
use rustix::process::Signal;
use serde_json::{Value, json};
use store::crash::Point;
use testkit::recordings::{FakeRecordings, Manner};
use testkit::{Cluster, World, wait_until};

use crate::app::{App, Folder, client, command, free_port};
use crate::browser::Browser;
use crate::channels::{PUBLIC_URL, TOKEN, form, target};
use crate::intake::{MASTER_KEY, new_channel};
use crate::names::open_channel;

const SOON: Duration = Duration::from_secs(120);

/// An installation as `up` makes it, and the provider's server of recordings.
struct Line {
    world: World,
    folder: Folder,
    port: u16,
    recordings: FakeRecordings,
}

impl Line {
    async fn new(world: World, last: u8) -> Self {
        Self { world, folder: Folder::new(), port: free_port(), recordings: FakeRecordings::start(last).await }
    }

    async fn up(&self, crash: Option<&str>) -> App {
        let mut up = command(&self.folder.0, self.port);
        up.env("DATABASE_URL", self.world.database.admin.uri().reveal()).env("MASTER_KEY", MASTER_KEY);
        up.env("PUBLIC_URL", PUBLIC_URL).env("OUTBOUND_ALLOW", self.recordings.network());
        up.env_remove("TRANSCRIBE");
        if let Some(crash) = crash {
            up.env("TRIBUTARY_CRASH", crash);
        }
        App::start(up, &["up"], self.port).await
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Signed callbacks of Twilio's: calls were recorded, and the recordings lie there.
    async fn calls(&self, n: usize) -> Vec<String> {
        let new = NewChannel { secret: Some(Secret::new(TOKEN)), ..new_channel("twilio") };
        let channel = open_channel(&self.world, self.world.tenant_id, new).await.secrets;
        let mut ids = Vec::new();
        for nth in 0..n {
            let (sid, url) = (format!("RE{nth}"), self.recordings.url(&format!("/RE{nth}")));
            let fields = [
                ("AccountSid", "AC1"),
                ("CallSid", "CA1"),
                ("RecordingSid", sid.as_str()),
                ("RecordingStatus", "completed"),
                ("RecordingUrl", url.as_str()),
                ("RecordingDuration", "7"),
            ];
            let (target, body) = (target(&channel), form(&fields));
            let signature = sign_twilio(&Secret::new(TOKEN), &format!("{PUBLIC_URL}{target}"), body.as_bytes());
            let request = client().post(self.url(&target)).header("x-twilio-signature", signature).body(body);
            let request = request.header("accept", "application/json");
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            let answer = request.send().await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::ACCEPTED);
            ids.push(answer.json::<Value>().await.expect("JSON")["id"].as_str().expect("an id").to_owned());
        }
        ids
    }

    async fn add(&self, raw_data: Value) -> String {
        sqlx::query_scalar(
            "insert into activities (tenant_id, type, raw_data) values ($1, 'call', $2) returning id::text",
        )
        .bind(self.world.tenant_id.0)
        .bind(raw_data)
        .fetch_one(&mut *self.world.conn().await)
        .await
        .expect("an activity")
    }

    /// The activity once it is completed or has failed.
    async fn ended(&self, id: &str, app: &App) -> Value {
        let mut row = Value::Null;
        let is_over = wait_until(SOON, async || {
            row = sqlx::query_scalar("select to_jsonb(a) from activities a where id = $1::uuid")
                .bind(id)
                .fetch_one(&mut *self.world.conn().await)
                .await
                .expect("an activity");
            ["completed", "failed"].iter().any(|status| row["processing_status"] == *status)
        });
        assert!(is_over.await, "I5: {row}\n{}", app.printed());
        row
    }

    async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a number")
    }
}

fn fixture(name: &str) -> &'static [u8] {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/files/speech").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).leak()
}

fn transcript(row: &Value) -> String {
    row["processed_data"]["transcript"].as_str().unwrap_or_default().to_lowercase()
}

/// Sound of so many seconds, 16,000 samples each.
fn wav(seconds: usize, sample: impl Fn(usize) -> i16) -> &'static [u8] {
    const RATE: usize = 16_000;
    let n_bytes = 2 * RATE * seconds;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + n_bytes as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend((RATE as u32).to_le_bytes());
    file.extend((2 * RATE as u32).to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend((n_bytes as u32).to_le_bytes());
    file.extend((0..RATE * seconds).flat_map(|nth| sample(nth).to_le_bytes()));
    file.leak()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_nothing_configured_ends_as_a_transcript_on_its_card_and_is_heard_once() {
    let line = Line::new(World::now().await, 61).await;
    line.recordings.answer(Manner::Gives("audio/x-wav", fixture("call.wav")));
    let app = line.up(None).await;
    let id = line.calls(1).await.remove(0);
    let row = line.ended(&id, &app).await;
    let said = transcript(&row);
    assert!(said.contains("roof of the old warehouse") && said.contains("tuesday morning"), "{row}");
    let known = &row["processed_data"];
    assert_eq!((&known["language"], &known["seconds"]), (&json!("en"), &json!(7)), "{row}");
    assert!(known["confidence"].as_f64().is_some_and(|sure| sure > 0.4 && sure <= 1.0), "{row}");
    assert!(row["metadata"].get("recovery_count").is_none(), "{row}");

    // It is found by what was said, and the same bytes as a file are not heard again.
    let (_, key) = line.world.caller(line.world.tenant_id, &[Scope::Read, Scope::Write]).await;
    let ask = async |path: &str| {
        let answer = client().get(line.url(path)).bearer_auth(key.reveal()).send().await.expect("an answer");
        answer.json::<Value>().await.unwrap_or_default()
    };
    let mut found = Value::Null;
    let is_found = wait_until(SOON, async || {
        found = ask("/api/v1/search?q=whose+roof+is+leaking").await;
        found["hits"][0]["external_id"] == format!("activity:{id}")
    });
    assert!(is_found.await, "{found}");
    let heard = "select sum(heard_ms)::int8 from files where state = 'read' and seconds = 7";
    let took_ms = line.number(heard).await;
    assert!(took_ms > 0, "nobody can say how fast it was heard");
    let file = client().post(line.url("/api/v1/documents")).bearer_auth(key.reveal()).header("x-file-name", "call.wav");
    let file = file.header("content-type", "audio/wav").body(fixture("call.wav"));
    let file = file.send().await.expect("an answer").json::<Value>().await.expect("JSON");
    let path = format!("/api/v1/documents/{}", file["id"].as_str().expect("an id"));
    let mut document = Value::Null;
    let is_read = wait_until(SOON, async || {
        document = ask(&path).await;
        document["status"] == "completed"
    });
    assert!(is_read.await, "{document}");
    assert!(document["text"].as_str().is_some_and(|text| text.to_lowercase().contains("warehouse")), "{document}");
    assert_eq!(line.number(heard).await, took_ms, "the same bytes were heard twice");

    let browser = Browser::signed_in(&app, &line.world).await;
    browser.goto(&line.url(&format!("/activities/{id}"))).await;
    assert!(browser.shows("old warehouse", SOON).await, "{}", browser.text().await);
    browser.photograph("call-heard").await;
    browser.goto(&line.url("/system/agents")).await;
    assert!(browser.shows("times as fast as they were spoken", SOON).await, "{}", browser.text().await);
    browser.photograph("agents-hearing").await;

    // Once neither a call nor a document has the bytes, nothing is left of what was heard of them.
    let gone = client().delete(line.url(&path)).bearer_auth(key.reveal()).send().await.expect("an answer");
    assert_eq!((gone.status(), line.number("select count(*) from files").await), (StatusCode::NO_CONTENT, 1));
    let mut owner = store::bench::administrator(&line.world.database.admin).await.expect("the owner");
    sqlx::query("delete from public.activities").execute(&mut owner).await.expect("deleted");
    assert_eq!(line.number("select (select count(*) from files) + (select count(*) from file_pages)").await, 0);
}

/// F19: each has its outcome in words, and a text that comes later waits for none of them.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_heard_says_why_and_keeps_no_text_waiting() {
    let line = Line::new(World::now().await, 62).await;
    let hiss = |nth: usize| ((nth as u32).wrapping_mul(2_654_435_761) >> 20) as i16 - 2_048;
    // A tune: a tone a second, so that only the model can tell.
    let tune = |nth: usize| {
        let tone = [262.0, 330.0, 392.0, 523.0][nth / 16_000 % 4];
        ((nth as f64 * tone * std::f64::consts::TAU / 16_000.0).sin() * 8_000.0) as i16
    };
    let (mp3, m4a, call) = (fixture("book.mp3"), fixture("memo.m4a"), fixture("call.wav"));
    let nobody = "Nobody speaks in the recording.";
    let cases: Vec<(&str, Manner, &str, &str)> = vec![
        ("an mp3", Manner::Gives("audio/mpeg", mp3), "completed", "the lease of the office in lisbon"),
        ("a voice note", Manner::Gives("audio/ogg", fixture("note.ogg")), "completed", "call you back this afternoon"),
        (
            "a wav that is cut off",
            Manner::Gives("audio/wav", &call[..60_000]),
            "completed",
            "roof of the old warehouse",
        ),
        (
            "an mp3 that is cut off",
            Manner::Gives("audio/mpeg", &mp3[..mp3.len() / 2]),
            "completed",
            "the lease of the office",
        ),
        ("silence", Manner::Gives("audio/wav", wav(20, |_| 0)), "completed", nobody),
        ("noise", Manner::Gives("audio/wav", wav(20, hiss)), "completed", nobody),
        ("a tune", Manner::Gives("audio/wav", wav(12, tune)), "completed", nobody),
        ("no bytes", Manner::Gives("audio/wav", b""), "failed", "the recording is empty"),
        ("half of the announced bytes", Manner::Half, "failed", "the recording could not be fetched"),
        (
            "an m4a that is cut off",
            Manner::Gives("audio/mp4", &m4a[..m4a.len() / 2]),
            "failed",
            "the recording is damaged",
        ),
        (
            "a text that says it is sound",
            Manner::Gives("audio/wav", b"canary: hello"),
            "failed",
            "the file there is not a recording",
        ),
        ("a page", Manner::Gives("text/html", b"<p>canary</p>"), "failed", "the file there is not a recording"),
        ("gone", Manner::Status(404, "canary"), "failed", "the recording could not be fetched"),
    ];
    line.recordings.answer_next(&cases.iter().map(|(_, manner, ..)| manner.clone()).collect::<Vec<_>>());
    let app = line.up(None).await;
    let ids = line.calls(cases.len()).await;
    let note = line.add(json!({ "source_type": "text", "content": "A text in between." })).await;
    assert_eq!(line.ended(&note, &app).await["processing_status"], "completed");
    let waiting = line.number("select count(*) from activities where processing_status in ('raw', 'processing')").await;
    assert!(waiting > 0, "all calls were heard before the text was looked at, so the test shows nothing");
    for ((name, _, status, words), id) in cases.iter().zip(&ids) {
        let row = line.ended(id, &app).await;
        assert_eq!(row["processing_status"], *status, "{name}: {row}");
        let shown = match *status {
            "failed" => row["metadata"]["error"]["message"].as_str().unwrap_or_default().to_owned(),
            _ if *words == nobody => {
                assert_eq!(transcript(&row), "", "{name}: words were invented");
                row["processed_data"]["summary"].as_str().unwrap_or_default().to_owned()
            }
            _ => transcript(&row),
        };
        assert!(shown.contains(words), "{name}: {row}");
    }
    assert!(!app.printed().contains("canary"), "S13: what a provider's server says is in the log");
}

/// F1, I1, I2: the program dies at every step of hearing a call.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_of_hearing_no_call_is_lost_and_no_page_is_heard_twice() {
    let cluster = Cluster::private().await;
    let points = Point::ALL.iter().copied().filter(|point| {
        (point.name().starts_with("file.") && *point != Point::FileFinished) || point.name().starts_with("agent.")
    });
    let points: Vec<(u8, Point)> = (70..).zip(points).collect();
    assert!(points.len() >= 6, "{points:?}");
    stream::iter(points)
        .map(|(last, point)| kill_at(&cluster, last, point))
        .buffer_unordered(2)
        .collect::<Vec<()>>()
        .await;
}

async fn kill_at(cluster: &Cluster, last: u8, point: Point) {
    let database = cluster.database(&format!("ears_{}", point.name().replace('.', "_"))).await;
    let line = Line::new(World::with(database, Clock::System).await, last).await;
    line.recordings.answer(Manner::Gives("audio/wav", long_call()));
    // Its head is kept first, then its first page.
    let nth = if matches!(point, Point::FilePagesWritten | Point::FilePagesKept) { 2 } else { 1 };
    let mut hurt = line.up(Some(&format!("{}:abort:{nth}", point.name()))).await;
    let id = line.add(json!({ "source_type": "url", "content": line.recordings.url("/RE1") })).await;
    let died = hurt.ended_within(SOON).await;
    assert!(
        died.is_some(),
        "crash point {} was never reached: remove it, or reach it\n{}",
        point.name(),
        hurt.printed()
    );
    // What is kept is marked: it would be overwritten if it were heard again.
    let marked = sqlx::query("update file_pages set text = 'It is kept.' where number = 1")
        .execute(&mut *line.world.conn().await)
        .await
        .expect("marked")
        .rows_affected();
    assert_eq!(marked == 1, matches!(point, Point::FilePagesKept | Point::FileRead | Point::AgentBeforeCommit));
    let up = line.up(None).await;
    let row = line.ended(&id, &up).await;
    let said = transcript(&row);
    let first = if marked == 1 { "it is kept." } else { "roof of the old warehouse" };
    assert!(
        row["processing_status"] == "completed" && said.contains(first) && said.contains("tuesday morning"),
        "{}: {row}",
        point.name()
    );
    let (pages, visits) = (line.number("select count(*) from file_pages").await, line.recordings.visits().len());
    assert_eq!((pages, visits.min(2)), (2, visits), "I2 after {}", point.name());
    assert_eq!(row["lock_epoch"], 2, "{}: {row}", point.name());
    println!("{}: not lost, nothing heard twice", point.name());
    up.signal(Signal::TERM);
}

/// Somebody speaks at its beginning, and after five minutes of silence again: two pages.
fn long_call() -> &'static [u8] {
    let call = fixture("call.wav");
    let at = call.windows(4).position(|four| four == b"data").expect("samples") + 8;
    let (head, samples) = call.split_at(at);
    // Two channels of 8,000 samples a second, each a byte.
    let silence = vec![0xff; 16_000 * 305 - samples.len()];
    let n_bytes = (2 * samples.len() + silence.len()) as u32;
    let mut head = head.to_vec();
    head[4..8].copy_from_slice(&(n_bytes + at as u32 - 8).to_le_bytes());
    head[at - 12..at - 8].copy_from_slice(&(n_bytes / 2).to_le_bytes());
    head[at - 4..].copy_from_slice(&n_bytes.to_le_bytes());
    [&head[..], samples, &silence, samples].concat().leak()
}
