//! Channels of every kind over HTTP: official libraries sign, mails bring their files, and senders that behave as Twilio and Postmark do
//! lose nothing while the database restarts.

use std::collections::HashMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{ChannelId, Clock, Scope, Secret};
use engine::channels::NewChannel;
use engine::intake::providers::twilio::sign as sign_twilio;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use store::channels::{Secrets, Settings};
use testkit::{Cluster, World, wait_until};
use uuid::Uuid;

use crate::app::{App, Folder, client, command, free_port, resident_kb, run};
use crate::intake::{MASTER_KEY, new_channel};
use crate::names::open_channel;

pub const PUBLIC_URL: &str = "https://hear.example.com";
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// One of those that Postmark publishes.
pub const POSTMARK_IP: &str = "50.31.156.6";

/// A server behind a proxy that says who called.
pub struct House {
    pub world: World,
    pub app: App,
    pub folder: Folder,
    pub http: reqwest::Client,
}

impl House {
    pub async fn new() -> Self {
        Self::on(World::now().await).await
    }

    pub async fn on(world: World) -> Self {
        Self::with(world, &[]).await
    }

    /// With further settings.
    pub async fn with(world: World, settings: &[(&str, &str)]) -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", &world.database.url).env("MASTER_KEY", MASTER_KEY).env("LOG", "debug");
        serve.env("PUBLIC_URL", PUBLIC_URL).env("PHONE_REGION", "US").envs(settings.iter().copied());
        let app = App::start(serve, &["serve"], port).await;
        Self { world, app, folder, http: client() }
    }

    pub async fn channel(&self, new: NewChannel) -> (ChannelId, Secrets) {
        let made = open_channel(&self.world, self.world.tenant_id, new).await;
        (made.id, made.secrets)
    }

    pub async fn twilio(&self) -> (ChannelId, Secrets) {
        self.channel(NewChannel { secret: Some(Secret::new(TOKEN)), ..new_channel("twilio") }).await
    }

    pub fn post(&self, target: &str) -> reqwest::RequestBuilder {
        self.http.post(format!("{}{target}", self.app.url))
    }

    pub async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a number")
    }
}

pub fn target(secrets: &Secrets) -> String {
    format!("/ingest/{}", secrets.ingestion_key.reveal())
}

pub fn form(fields: &[(&str, &str)]) -> String {
    let encoded =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect::<Vec<_>>().join("&")
}

/// Signatures made by the providers' official libraries: `[["twilio", token, url, {…}], ["standard", secret, id, timestamp, body]]`.
fn signed_by_others(cases: &Value) -> Vec<String> {
    const PROGRAM: &str = "
import datetime, json, sys
from twilio.request_validator import RequestValidator
from standardwebhooks import Webhook
for case in json.load(sys.stdin):
    if case[0] == 'twilio':
        print(RequestValidator(case[1]).compute_signature(case[2], case[3]))
    else:
        at = datetime.datetime.fromtimestamp(case[3], datetime.timezone.utc)
        print(Webhook(case[1]).sign(case[2], at, case[4]))
";
    let packages = std::env::var("TEST_PACKAGES_DIR").expect("TEST_PACKAGES_DIR; ./test sets it");
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM]).env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    child.stdin.take().expect("stdin").write_all(cases.to_string().as_bytes()).expect("written");
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_official_libraries_sign_is_taken_in() {
    let house = House::new().await;
    let (_, twilio) = house.twilio().await;
    let (_, generic) = house.channel(new_channel("generic")).await;
    let url = format!("{PUBLIC_URL}{}", target(&twilio));
    let messages = [
        json!({ "MessageSid": "SM1", "From": "+14158675309", "To": "+15005550001", "Body": "hello", "NumMedia": "0" }),
        json!({ "MessageSid": "SM2", "From": "whatsapp:+5511999990000", "To": "whatsapp:+15005550001", "Body": "Olá + café & = % ☕", "FromZip": "" }),
        json!({ "CallSid": "CA1", "RecordingSid": "RE1", "RecordingUrl": "https://api.example/RE1", "RecordingStatus": "completed", "RecordingDuration": "31" }),
        json!({ "CallSid": "CA1", "CallStatus": "completed", "Direction": "inbound", "From": "+14158675309", "To": "+15005550001", "SequenceNumber": "2" }),
    ];
    let secret = generic.proofs.get("webhook_secret").expect("a secret").reveal();
    let (now, body) = (chrono::Utc::now().timestamp(), r#"{"type":"note","content":"signed by a library"}"#);
    let mut cases: Vec<Value> = messages.iter().map(|fields| json!(["twilio", TOKEN, url, fields])).collect();
    cases.push(json!(["standard", secret, "msg_1", now, body]));
    let signatures = signed_by_others(&Value::Array(cases));
    assert_eq!(signatures.len(), 5);
    for (fields, signature) in messages.iter().zip(&signatures) {
        let fields: Vec<(&str, &str)> = fields
            .as_object()
            .expect("fields")
            .iter()
            .map(|(name, value)| (&**name, value.as_str().expect("text")))
            .collect();
        let send = || {
            let request = house.post(&target(&twilio)).header("x-twilio-signature", signature);
            request.header("content-type", "application/x-www-form-urlencoded").body(form(&fields)).send()
        };
        let answer = send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 200, "{fields:?}");
        assert_eq!(answer.headers()["content-type"], "text/xml");
        let id = answer.headers()["x-activity-id"].clone();
        assert_eq!(answer.text().await.expect("TwiML"), "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response/>");
        let again = send().await.expect("an answer");
        assert_eq!(again.headers()["x-activity-id"], id, "a redelivery is the same activity");
    }
    let request =
        house.post(&target(&generic)).header("webhook-id", "msg_1").header("webhook-timestamp", now.to_string());
    let request = request.header("webhook-signature", &signatures[4]).header("content-type", "application/json");
    let answer = request.body(body).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 202);
    let kinds: Vec<String> = sqlx::query_scalar("select type || ' ' || event_key from activities order by event_key")
        .fetch_all(&mut *house.world.conn().await)
        .await
        .expect("rows");
    assert_eq!(
        kinds,
        ["call CA1:completed:2", "call RE1:completed", "sms SM1", "whatsapp SM2", "note msg_1"].map(String::from)
    );
    let key = house.number("select count(*) from activities where metadata ->> 'from_key' = '+14158675309'").await;
    assert_eq!(key, 2);

    // A caller that asks for JSON gets it, also from a Twilio channel.
    let body = form(&[("MessageSid", "SM9"), ("Body", "x")]);
    let request = house
        .post(&target(&twilio))
        .header("x-twilio-signature", sign_twilio(&Secret::new(TOKEN), &url, body.as_bytes()));
    let request =
        request.header("content-type", "application/x-www-form-urlencoded").header("accept", "application/json");
    let answer: Value = request.body(body).send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(answer["success"], true);
}

fn mail(id: &str, text: &str, attachments: &[(&str, &str, &[u8])]) -> String {
    let files: Vec<Value> = attachments
        .iter()
        .map(|(name, kind, bytes)| {
            json!({ "Name": name, "ContentType": kind, "Content": STANDARD.encode(bytes), "ContentLength": bytes.len(), "ContentID": "" })
        })
        .collect();
    json!({
        "From": "ana@example.com", "FromName": "Ana", "FromFull": { "Email": "ana@example.com", "Name": "Ana", "MailboxHash": "" },
        "To": "in@mail.example", "Subject": "Papers", "MessageID": id, "TextBody": text, "HtmlBody": "",
        "Headers": [{ "Name": "Message-ID", "Value": "<m1@example.com>" }], "Attachments": files
    })
    .to_string()
}

/// S11.
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_brings_its_files_however_large() {
    let house = House::new().await;
    let (_, postmark) = house.channel(new_channel("postmark")).await;
    let large: Vec<u8> = (0..37_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let body = mail(
        "mail-1",
        "see attached",
        &[("../../etc/passwd", "application/pdf", b"%PDF-"), ("large.bin", "application/octet-stream", &large)],
    );
    assert!((49 << 20..50 << 20).contains(&body.len()));
    let before = resident_kb(house.app.pid(), "VmRSS");
    let send = |body: String, from: &str| {
        house
            .post(&target(&postmark))
            .header("x-forwarded-for", from.to_owned())
            .header("content-type", "application/json")
            .body(body)
            .send()
    };
    let answer = send(body.clone(), POSTMARK_IP).await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
    let id: Uuid = answer.json::<Value>().await.expect("JSON")["id"].as_str().expect("an id").parse().expect("a uuid");
    let mut conn = house.world.conn().await;
    let files =
        store::activities::attachments(&mut conn, house.world.tenant_id, domain::ActivityId(id)).await.expect("files");
    let named: Vec<(&str, i64)> = files.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
    assert_eq!(named, [("../../etc/passwd", 5), ("large.bin", 37 << 20)]);
    let payload =
        store::activities::payload(&mut conn, house.world.tenant_id, domain::ActivityId(id)).await.expect("an answer");
    assert!(payload.expect("an original").blob_key.is_some());
    let listed: Value = sqlx::query_scalar("select metadata -> 'attachments' from activities where id = $1")
        .bind(id)
        .fetch_one(&mut *conn)
        .await
        .expect("a row");
    assert_eq!(listed[1]["name"], "large.bin");

    let (_, key) = house.world.caller(house.world.tenant_id, &[Scope::Read]).await;
    let saved = house
        .http
        .get(format!("{}/activities/{id}/attachments/1", house.app.url))
        .bearer_auth(key.reveal())
        .send()
        .await
        .expect("an answer");
    assert_eq!(saved.headers()["content-disposition"], "attachment; filename=\"large.bin\"");
    assert_eq!(saved.headers()["content-type"], "application/octet-stream");
    assert!(saved.bytes().await.expect("bytes") == large, "the file is not what was sent");
    let saved = house
        .http
        .get(format!("{}/activities/{id}/attachments/0", house.app.url))
        .bearer_auth(key.reveal())
        .send()
        .await
        .expect("an answer");
    assert_eq!(saved.headers()["content-disposition"], "attachment; filename=\"_.._etc_passwd\"", "S11");

    // Three more, all at once: together more than the waiting room holds, and more than memory should.
    let others = ["mail-3", "mail-4", "mail-5"].map(|id| send(mail(id, id, &[(id, "x/y", &large)]), POSTMARK_IP));
    for answer in futures_util::future::join_all(others).await {
        assert_eq!(answer.expect("an answer").status().as_u16(), 200);
    }
    let most = resident_kb(house.app.pid(), "VmHWM");
    println!("resident before {} MB, at most {} MB", before / 1024, most / 1024);
    assert!(most.saturating_sub(before) < 64 << 10, "mails were held in memory: {before} kB before, {most} at most");

    // The same mail again is the same; a forger gets no further than a megabyte, and is answered 401, never 403.
    let again: Value = send(body.clone(), POSTMARK_IP).await.expect("an answer").json().await.expect("JSON");
    assert_eq!(again["id"], id.to_string());
    if let Ok(answer) = send(body, "203.0.113.9").await {
        assert_eq!(answer.status().as_u16(), 413);
    }
    let forged = send(mail("mail-2", "forged", &[]), "203.0.113.9").await.expect("an answer");
    assert_eq!(forged.status().as_u16(), 401);
    let basic = postmark.proofs.get("basic").expect("a password").reveal();
    let (user, password) = basic.split_once(':').expect("user and password");
    let request =
        house.post(&target(&postmark)).basic_auth(user, Some(password)).header("content-type", "application/json");
    assert_eq!(
        request.body(mail("mail-6", "by password", &[])).send().await.expect("an answer").status().as_u16(),
        200
    );
    assert_eq!(house.number("select count(*) from activities").await, 5);

    // What was refused is listed with why, never with what was sent.
    let refusals = "select count(*) from tributary.channel_refusals where reason like '%none of Postmark%' and address = '203.0.113.9' and status = 401";
    assert!(wait_until(Duration::from_secs(5), async || house.number(refusals).await == 1).await);
    let canaries =
        "select count(*) from tributary.channel_refusals r where r::text like '%forged%' or r::text like '%mail-2%'";
    assert_eq!(house.number(canaries).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_first_contacts_of_one_address_are_one_contact() {
    let house = House::new().await;
    let new = NewChannel { auto_create_contacts: true, ..new_channel("generic") };
    let (_, generic) = house.channel(new).await;
    let (_, deaf) = house.channel(new_channel("generic")).await;
    let bearer = |secrets: &Secrets| secrets.proofs.get("bearer").expect("a key").reveal().to_owned();
    let sends = (0..1_000).map(|n| {
        // Half of them write the address in another way; every tenth is somebody else, in shuffled order.
        let from = match n % 10 {
            0 => format!("Person {} <p{}@example.com>", n % 7, n % 7),
            1..5 => "Ann <ANN@Example.com>".to_owned(),
            _ => "ann@example.com".to_owned(),
        };
        let request =
            house.post(&target(&generic)).bearer_auth(bearer(&generic)).json(&json!({ "content": "x", "from": from }));
        async move { request.send().await.expect("an answer").status().as_u16() }
    });
    let answers: Vec<u16> = stream::iter(sends).buffer_unordered(64).collect().await;
    assert!(answers.iter().all(|status| *status == 202));
    assert_eq!(house.number("select count(*) from contacts").await, 8);
    for from in ["no-reply@shop.example", "bounces+17=x@mail.example", "MAILER-DAEMON@mx.example", "anonymous", "12345"]
    {
        let request =
            house.post(&target(&generic)).bearer_auth(bearer(&generic)).json(&json!({ "content": "x", "from": from }));
        assert_eq!(request.send().await.expect("an answer").status().as_u16(), 202);
    }
    assert_eq!(house.number("select count(*) from contacts").await, 8, "a program became a contact");
    let anns = "select count(*) from activities a join contacts c on c.tenant_id = a.tenant_id and c.id = a.contact_id where c.email = 'ann@example.com'";
    assert_eq!(house.number(anns).await, 900);
    let made = "select count(*) from contacts where first_name = 'ann' and last_name = '' and tags = '{auto-created,unqualified}'";
    assert_eq!(house.number(made).await, 1);
    let request = house
        .post(&target(&deaf))
        .bearer_auth(bearer(&deaf))
        .json(&json!({ "content": "x", "from": "new@example.com" }));
    assert_eq!(request.send().await.expect("an answer").status().as_u16(), 202);
    assert_eq!(house.number("select count(*) from activities where contact_id is null").await, 6, "Unmatched");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_is_managed_from_the_command_line() {
    let house = House::new().await;
    let tributary = |args: &[&str], stdin: &str| {
        let mut command = command(&house.folder.0, free_port());
        command.env("LISTEN", house.app.url.strip_prefix("http://").expect("an address"));
        command
            .env("DATABASE_URL", &house.world.database.url)
            .env("MASTER_KEY", MASTER_KEY)
            .env("PUBLIC_URL", PUBLIC_URL);
        let path = house.folder.0.join("stdin");
        std::fs::create_dir_all(&house.folder.0).expect("a folder");
        std::fs::write(&path, stdin).expect("a file");
        command.stdin(std::fs::File::open(&path).expect("a file"));
        let (output, stdout, stderr) = run(command.args(args));
        (output.status.success(), stdout, stderr)
    };
    let (is_done, stdout, stderr) = tributary(
        &["channel", "add", "line", "--provider", "twilio", "--secret", "-", "--json"],
        &format!("{TOKEN}\n"),
    );
    assert!(is_done, "{stderr}");
    assert!(!stdout.contains(TOKEN) && !stderr.contains(TOKEN), "the token is Twilio's to show");
    let made: Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(made["url"].as_str().is_some_and(|url| url.starts_with(PUBLIC_URL) && url.ends_with("#rc=5&rp=all")));
    let id = made["id"].as_str().expect("an id").to_owned();
    let (is_done, stdout, stderr) = tributary(&["channel", "send-test", &id], "");
    assert!(is_done && stdout.contains("200 "), "{stdout}{stderr}");
    let (is_done, _, stderr) = tributary(
        &["channel", "rotate", &id, "--secret", "-", "--keep-hours", "0"],
        "another-token-of-24-characters\n",
    );
    assert!(is_done, "{stderr}");
    let (is_done, stdout, _) = tributary(&["channel", "disable", &id], "");
    assert!(is_done && stdout.contains("within 5 s"));
    let is_told = wait_until(Duration::from_secs(10), async || {
        let is_taken = tributary(&["channel", "send-test", &id], "").0;
        !is_taken && tributary(&["channel", "show", &id], "").1.contains("the channel is disabled")
    });
    assert!(is_told.await, "a disabled channel takes webhooks, or its owner is not told why it does not");
    let (is_done, _, stderr) = tributary(&["channel", "add", "line", "--provider", "twilio"], "");
    assert!(!is_done && stderr.contains("auth token"), "{stderr}");

    let csv = "email,phone,name,tags\nann@example.com,+1 415 867 5309,Ann Smith,vip;press\nbroken,,,\n,,Nobody,\nann@EXAMPLE.com,,,late\n";
    let (is_done, stdout, stderr) = tributary(&["contact", "import", "-"], csv);
    assert!(is_done && stdout.contains("1 new, 1 completed, 0 as they were, 2 left out"), "{stdout}{stderr}");
    assert!(stderr.contains("line 3 was left out") && stderr.contains("line 4"), "{stderr}");
    let (_, stdout, _) = tributary(&["contact", "list", "smith", "--json"], "");
    let listed: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(listed["contacts"][0]["tags"], json!(["vip", "press", "late"]));
    let (_, stdout, _) = tributary(&["activity", "list", "--view", "unmatched", "--json"], "");
    let unmatched: Value = serde_json::from_str(&stdout).expect("JSON");
    let activity = unmatched["activities"][0]["id"].as_str().expect("the test message").to_owned();
    let contact = listed["contacts"][0]["id"].to_string();
    let (is_done, stdout, stderr) = tributary(&["activity", "link", &activity, &contact, "--add-address"], "");
    assert!(is_done && stdout.starts_with("linked"), "{stdout}{stderr}");
    let (_, stdout, _) = tributary(&["contact", "show", &contact], "");
    assert!(stdout.contains("+15005550006"), "{stdout}");
    let (is_done, _, _) = tributary(&["activity", "skip", &activity], "");
    assert!(is_done);
    let (is_done, stdout, _) = tributary(&["activity", "retry", &activity], "");
    assert!(is_done, "{stdout}");
    assert!(!tributary(&["activity", "retry", &activity], "").0, "what has not failed is not retried");
}

/// Senders that try again as Twilio does with the shown URL's rules (five times within 15 s) and as Postmark does (its minutes are our
/// tenths of a second). 10,000 events in `./test --slow`.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_database_under_a_burst_loses_nothing() {
    let n = if testkit::is_slow() { 10_000 } else { 1_500 };
    let cluster = Cluster::private().await;
    let house = House::on(World::with(cluster.database("burst").await, Clock::System).await).await;
    let (_, twilio) = house.twilio().await;
    let (_, postmark) = house
        .channel(NewChannel {
            settings: Settings { require_ip: false, ..Settings::default() },
            ..new_channel("postmark")
        })
        .await;
    let url = format!("{PUBLIC_URL}{}", target(&twilio));
    const TOTAL: Duration = Duration::from_secs(15); // Twilio's, all attempts together
    let event_key = |nth: usize| if nth.is_multiple_of(2) { format!("SM{nth}") } else { format!("mail-{nth}") };
    let attempt = async |nth: usize, left: Duration| -> bool {
        let request = if nth.is_multiple_of(2) {
            let body = form(&[("MessageSid", &event_key(nth)), ("From", "+14158675309"), ("Body", "in the storm")]);
            let signature = sign_twilio(&Secret::new(TOKEN), &url, body.as_bytes());
            let request = house.post(&target(&twilio)).header("x-twilio-signature", signature).timeout(left);
            request.header("content-type", "application/x-www-form-urlencoded").body(body)
        } else {
            let body = mail(&event_key(nth), "in the storm", &[]);
            house.post(&target(&postmark)).header("content-type", "application/json").body(body)
        };
        request.send().await.is_ok_and(|answer| answer.status().as_u16() == 200)
    };
    let (tries, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // The waits between attempts are those of the two providers.
    let deliver = async |nth: usize| -> bool {
        let begun = Instant::now();
        let waits: &[u64] = if nth.is_multiple_of(2) {
            &[0, 0, 0, 0, 0]
        } else {
            &[100, 500, 1_000, 1_000, 1_000, 1_500, 3_000, 6_000, 12_000, 36_000]
        };
        for wait in std::iter::once(&0).chain(waits) {
            tokio::time::sleep(Duration::from_millis(*wait)).await;
            let left = TOTAL.saturating_sub(begun.elapsed());
            if nth.is_multiple_of(2) && left.is_zero() {
                return false;
            }
            tries.fetch_add(1, Relaxed);
            if attempt(nth, left).await {
                taken.fetch_add(1, Relaxed);
                return true;
            }
        }
        false
    };
    let storm = async {
        for nth in 0..3 {
            let before = taken.load(Relaxed);
            let is_busy = wait_until(Duration::from_secs(60), async || taken.load(Relaxed) >= before + n / 6);
            assert!(is_busy.await, "only {} more events were taken within a minute", taken.load(Relaxed) - before);
            cluster.kill();
            if nth == 0 && testkit::is_slow() {
                // Time itself: longer than a sender is held, so that senders hear 503.
                tokio::time::sleep(Duration::from_millis(10_300)).await;
            }
            cluster.restart().await;
        }
    };
    // Answers come in any order, so each says whose it is.
    let sends = stream::iter(0..n).map(async |nth| (nth, deliver(nth).await));
    let sends = sends.buffer_unordered(64).collect::<Vec<(usize, bool)>>();
    let ((), answered) = tokio::join!(storm, sends);
    let mut conn = house.world.login_conn().await;
    sqlx::raw_sql("set role service_role").execute(&mut conn).await.expect("the service's role");
    let keys: Vec<String> =
        sqlx::query_scalar("select event_key from activities").fetch_all(&mut conn).await.expect("events");
    let mut stored = HashMap::<&str, usize>::new();
    for key in &keys {
        *stored.entry(key).or_default() += 1;
    }
    // A sender that gave up was promised nothing: its event may be there, once, or not.
    let (mut gave_up, mut lost) = (0, 0);
    for (nth, is_taken) in &answered {
        let found = stored.get(&*event_key(*nth)).copied().unwrap_or(0);
        assert!(found <= 1, "{} was stored {found} times", event_key(*nth));
        gave_up += usize::from(!is_taken);
        lost += usize::from(*is_taken && found == 0);
    }
    let again = tries.into_inner() - n;
    println!("{n} events, 3 kills, {again} sent again after an error, {gave_up} senders gave up, {lost} lost");
    assert!(again > 0 || !testkit::is_slow(), "nobody was told to come again: the test shows no redelivery");
    assert!(gave_up < n, "every sender gave up");
    assert_eq!(lost, 0, "events were acknowledged and lost");
}
