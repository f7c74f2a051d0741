//! Agents written with Supabase's own client, unmodified, as processes of their own: they claim, complete, are woken, die, sleep and cheat. Each
//! prints what it does; that is held against the rows.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::{KeyId, Scope, Secret, TenantId};
use futures_util::{StreamExt as _, stream};
use rustix::process::Signal;
use serde_json::{Value, json};
use store::{keys, people};
use testkit::{World, stays_true, wait_until};
use uuid::Uuid;

use crate::app::{App, Folder, client, command, free_port};
use crate::intake::{MASTER_KEY, Opens, add_channel};

/// A tenant with a door, and a server without lanes: what happens to activities is the agents' doing alone.
pub struct Office {
    pub world: World,
    pub app: App,
    door: Opens,
    _folder: Folder,
}

impl Office {
    pub async fn new() -> Self {
        let world = World::now().await;
        let (_, door) = add_channel(&world, world.tenant_id, None).await;
        let (folder, port) = (Folder::new(), free_port());
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", &world.database.url).env("LOG", "debug").env("MASTER_KEY", MASTER_KEY);
        let app = App::start(serve, &["serve"], port).await;
        Self { world, app, door, _folder: folder }
    }

    pub async fn key(&self, tenant_id: TenantId, email: &str) -> (KeyId, Secret) {
        let mut conn = self.world.conn().await;
        let person = people::ensure(&mut conn, tenant_id, email).await.expect("a person");
        keys::create(&mut conn, tenant_id, Some(person), "device", &[Scope::Agent]).await.expect("a key")
    }

    /// Brings an event to a door.
    async fn send_to(&self, door: &Opens, kind: &str, content: &str) -> Uuid {
        let url = format!("{}/ingest/{}", self.app.url, door.ingestion_key.reveal());
        let body = json!({ "type": kind, "content": content });
        let answer = client().post(url).bearer_auth(door.bearer.reveal()).json(&body).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 202);
        let said: Value = answer.json().await.expect("JSON");
        said["id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
    }

    pub async fn send(&self, kind: &str, content: &str) -> Uuid {
        self.send_to(&self.door, kind, content).await
    }

    async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a number")
    }

    pub async fn run(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&mut *self.world.conn().await).await.expect("done");
    }

    /// Calls a function as the client would.
    async fn call(&self, key: &Secret, function: &str) -> Value {
        let request = client().post(format!("{}/rest/v1/rpc/{function}", self.app.url)).header("apikey", key.reveal());
        request.json(&json!({})).send().await.expect("an answer").json().await.expect("JSON")
    }
}

/// `agent.mjs` in a process, and its ledger.
pub struct Agent {
    child: Child,
    ledger: Arc<Mutex<Vec<Value>>>,
}

impl Agent {
    pub fn start(office: &Office, what: &str, key: &Secret, name: &str, last: &str, work_ms: u32) -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agent.mjs");
        let mut command = Command::new("node");
        command.args([program, what, &office.app.url, key.reveal(), name, last]).env("WORK_MS", work_ms.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node; ./test asks for it");
        let (out, ledger) = (child.stdout.take().expect("its output"), Arc::new(Mutex::new(Vec::new())));
        let lines = ledger.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                lines.lock().expect("a ledger").push(serde_json::from_str(&line).expect("a line of JSON"));
            }
        });
        Self { child, ledger }
    }

    pub fn said(&self, event: &str) -> Vec<Value> {
        let ledger = self.ledger.lock().expect("a ledger");
        ledger.iter().filter(|line| line["event"] == event).cloned().collect()
    }

    pub async fn says(&self, event: &str, limit: Duration, is_it: impl Fn(&Value) -> bool) -> Option<Value> {
        let mut found = None;
        wait_until(limit, async || {
            found = self.said(event).into_iter().find(|line| is_it(line));
            found.is_some()
        })
        .await;
        found
    }

    /// Waits until the agent finds nothing more to claim.
    fn is_idle(&self) -> bool {
        let ledger = self.ledger.lock().expect("a ledger");
        ledger.iter().rfind(|line| line["event"] != "status").is_some_and(|line| line["event"] == "idle")
    }

    fn signal(&self, signal: Signal) {
        testkit::cluster::kill(self.child.id(), signal);
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().expect("its input"), "{line}").expect("told");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub const LONG: Duration = Duration::from_secs(60);

/// F40, S17.
#[tokio::test(flavor = "multi_thread")]
async fn four_agents_complete_a_thousand_activities_once_each_though_one_dies_and_one_oversleeps() {
    let office = Office::new().await;
    let tenant_id = office.world.tenant_id;
    let mut keys = HashMap::new();
    for name in ["ann", "bob", "eve", "joe"] {
        keys.insert(name, office.key(tenant_id, &format!("{name}@office.test")).await.1);
    }
    // Everybody's and nobody's, old enough that others may take what an owner leaves.
    office
        .run(
            "insert into activities (tenant_id, type, sales_id, raw_data, created_at)
             select t.id, 'note', (select s.id from sales s where s.tenant_id = t.id order by s.id limit 1 offset n % 5),
                 jsonb_build_object('source_type', 'text', 'content', repeat('x', n % 50)), now() - interval '10 minutes'
             from tenants t, generate_series(1, 400) n",
        )
        .await;
    let begun = Instant::now();
    let start = |name: &str, work_ms| Agent::start(&office, "work", &keys[name], name, "2.0.0", work_ms);
    let (ann, bob, joe) = (start("ann", 0), start("bob", 0), start("joe", 2));
    let eve = start("eve", 400);
    let elsewhere = office.world.other_tenant("elsewhere").await;
    let (_, stranger) = office.key(elsewhere, "mallory@elsewhere.test").await;
    let mallory = Agent::start(&office, "work", &stranger, "mallory", "2.0.0", 0);

    // One falls asleep with work in its hands, one dies.
    let held = eve.says("claimed", LONG, |_| true).await.expect("eve never claimed");
    eve.signal(Signal::STOP);
    let held_id: Uuid = held["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    assert!(wait_until(LONG, async || joe.said("completed").len() >= 20).await, "joe is slow");
    joe.signal(Signal::KILL);
    let status = "select count(*) from activities where processing_status = 'raw'";
    assert!(
        wait_until(LONG, async || office.number(status).await == 0 && ann.is_idle() && bob.is_idle()).await,
        "not drained"
    );
    println!("400 were drained after {:?}", begun.elapsed());

    // Somebody else's claim is not completed, whatever key is shown.
    for (key, wanted) in [(&keys["bob"], json!([409, "PT409", null])), (&stranger, json!([200, null, 0]))] {
        let cheat = Agent::start(&office, "complete", key, "cheat", &held_id.to_string(), 0);
        let tried = cheat.says("tried", LONG, |_| true).await.expect("an answer");
        assert_eq!(json!([tried["status"], tried["code"], tried["rows"]]), wanted, "F40");
    }
    let in_hands = office.number("select count(*) from activities where processing_status = 'processing'").await;
    assert!((1..=2).contains(&in_hands), "what eve and perhaps joe had: {in_hands}");
    assert_eq!(office.call(&keys["ann"], "unlock_stale_locks").await, json!(0), "their time is not over");
    office
        .run("update activities set locked_at = now() - interval '6 minutes' where processing_status = 'processing'")
        .await;
    assert_eq!(office.call(&keys["ann"], "unlock_stale_locks").await, json!(in_hands));

    // New events wake waiting agents, long before the 30 s after which agents would look again.
    let woken = Instant::now();
    let send = async |n: usize| office.send("note", &format!("event {n}")).await;
    let claimed = || ann.said("claimed").len() + bob.said("claimed").len();
    let before = claimed();
    send(0).await;
    assert!(wait_until(Duration::from_secs(15), async || claimed() > before).await, "nobody was woken");
    assert_eq!(stream::iter(1..600).map(send).buffer_unordered(16).count().await, 599);
    let done = "select count(*) from activities where processing_status = 'completed'";
    assert!(wait_until(LONG, async || office.number(done).await == 1_000).await, "not all were completed");
    println!("600 more were drained {:?} after the first came", woken.elapsed());

    eve.signal(Signal::CONT);
    let late =
        eve.says("refused", LONG, |line| line["id"] == held["id"]).await.expect("eve's late result was not refused");
    assert_eq!((&late["status"], &late["code"]), (&json!(409), &json!("PT409")), "I3");

    assert!(mallory.said("claimed").is_empty(), "S17: {:?}", mallory.said("claimed"));
    let (mut by, mut twice) = (HashMap::new(), Vec::new());
    for (name, agent) in [("ann", &ann), ("bob", &bob), ("eve", &eve), ("joe", &joe)] {
        for line in agent.said("completed") {
            let id: Uuid = line["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
            if by.insert(id, (name, line["lock_epoch"].as_i64())).is_some() {
                twice.push(id);
            }
        }
        println!("{name} completed {}", agent.said("completed").len());
        assert!(agent.said("lost").is_empty() && agent.said("claim refused").is_empty(), "{name}");
    }
    assert_eq!(twice, Vec::<Uuid>::new(), "two agents say that they completed the same");
    let sql = "select id, processed_data ->> 'by', lock_epoch, coalesce((metadata ->> 'recovery_count')::int, 0) from activities";
    let rows: Vec<(Uuid, String, i32, i32)> =
        sqlx::query_as(sql).fetch_all(&mut *office.world.conn().await).await.expect("rows");
    assert_eq!(rows.len(), 1_000);
    let mut recovered = 0;
    for (id, name, epoch, recoveries) in rows {
        assert_eq!(epoch, 1 + recoveries, "{id}: claimed once, and once more for each recovery");
        recovered += i64::from(recoveries);
        match by.get(&id) {
            Some((who, at)) => assert_eq!((*who, *at), (name.as_str(), Some(i64::from(epoch))), "{id}"),
            // Died between the answer and its own line about it.
            None => assert_eq!(name, "joe", "{id} was completed by nobody who says so"),
        }
    }
    assert_eq!(recovered, in_hands);
}

/// In milliseconds since 1970, as the clients write it.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs_f64() * 1_000.0
}

fn is(on: &'static str, id: Uuid) -> impl Fn(&Value) -> bool {
    move |line| line["on"] == on && line["change"]["new"]["id"] == json!(id)
}

/// S25.
#[tokio::test(flavor = "multi_thread")]
async fn the_real_client_hears_of_changes_in_both_versions_of_its_protocol() {
    let office = Office::new().await;
    let tenant_id = office.world.tenant_id;
    let (key_id, key) = office.key(tenant_id, "ann@office.test").await;
    let elsewhere = office.world.other_tenant("elsewhere").await;
    let (_, their_door) = add_channel(&office.world, elsewhere, None).await;
    let soon = Duration::from_secs(15);
    let mut listeners = ["1.0.0", "2.0.0"].map(|vsn| Agent::start(&office, "listen", &key, vsn, vsn, 0));
    for listener in &listeners {
        let status = listener.says("status", LONG, |line| line["status"] != "").await.expect("a status");
        assert_eq!(status["status"], "SUBSCRIBED", "{status}");
        let refused =
            listener.says("unknown refused", soon, |_| true).await.expect("a table of others was not refused");
        assert!(refused["error"].as_str().is_some_and(|error| error.contains("public.activities alone")), "{refused}");
    }

    let mut waits = Vec::new();
    let mut last = Uuid::nil();
    for n in 0..20 {
        let sent = now();
        last = office.send("note", &format!("hello {n}")).await;
        for listener in &listeners {
            let heard = listener.says("heard", soon, is("raw inserts", last)).await.expect("an insert was not told");
            waits.push(heard["at"].as_f64().expect("a time") - sent);
            let change = &heard["change"];
            assert_eq!(
                (&change["eventType"], &change["schema"], &change["table"]),
                (&json!("INSERT"), &json!("public"), &json!("activities"))
            );
            assert_eq!(change["new"]["raw_data"]["content"], format!("hello {n}"));
            assert_eq!((&change["new"]["lock_epoch"], &change["errors"]), (&json!(0), &Value::Null));
        }
    }
    waits.sort_by(f64::total_cmp);
    println!(
        "from sending an event to hearing of it: {:.0} ms at p50, {:.0} ms at most",
        waits[waits.len() / 2],
        waits[waits.len() - 1]
    );

    let (call, foreign) = (office.send("call", "ring").await, office.send_to(&their_door, "call", "ring").await);
    let claimed = office.call(&key, "claim_next_pending_activity").await;
    let claimed: Uuid = claimed[0]["id"].as_str().and_then(|id| id.parse().ok()).expect("a claim");
    // What a program wrote by SQL, of which nobody told the server.
    let sql = "insert into activities (tenant_id, type, raw_data) values ($1, 'note', '{\"source_type\":\"text\",\"content\":\"by hand\"}') returning id";
    let by_hand: Uuid =
        sqlx::query_scalar(sql).bind(tenant_id.0).fetch_one(&mut *office.world.conn().await).await.expect("a row");
    for listener in &listeners {
        assert!(listener.says("heard", soon, is("calls", call)).await.is_some(), "the filtered insert was not told");
        assert_eq!(
            listener.said("heard").iter().filter(|line| line["on"] == "calls").count(),
            1,
            "the filter was not applied"
        );
        let update = listener.says("heard", soon, is("updates", claimed)).await.expect("the claim was not told");
        assert_eq!(
            (&update["change"]["eventType"], &update["change"]["old"]),
            (&json!("UPDATE"), &json!({ "id": claimed }))
        );
        assert_eq!(update["change"]["new"]["processing_status"], "processing");
        assert!(listener.says("heard", soon, is("everything", claimed)).await.is_some());
        assert!(
            listener.says("heard", 2 * soon, is("raw inserts", by_hand)).await.is_some(),
            "a row written by hand was not found"
        );
        assert!(!listener.said("heard").iter().any(|line| line["change"]["new"]["id"] == json!(foreign)), "S17");
        let inserts = listener.said("heard").into_iter().filter(is("raw inserts", last)).count();
        assert_eq!(inserts, 1, "told once");
    }

    listeners[0].tell("leave");
    assert_eq!(listeners[0].says("left", LONG, |_| true).await.expect("an answer")["how"], "ok");
    let after = office.send("note", "after leaving").await;
    assert!(listeners[1].says("heard", soon, is("raw inserts", after)).await.is_some());
    let has_heard =
        |nth: usize, id: Uuid| listeners[nth].said("heard").iter().any(|line| line["change"]["new"]["id"] == json!(id));
    assert!(stays_true(Duration::from_millis(200), async || !has_heard(0, after)).await, "told after leaving");

    assert!(keys::revoke(&mut *office.world.conn().await, tenant_id, key_id).await.expect("revoked"));
    let revoked = Instant::now();
    let lost =
        listeners[1].says("status", Duration::from_millis(5_500), |line| line["status"] == "CHANNEL_ERROR").await;
    assert!(lost.is_some(), "S25: {:?}", listeners[1].said("status"));
    println!("a revoked key's socket was closed after {:?}", revoked.elapsed());
    let late = office.send("note", "after revoking").await;
    // It connects again after a second, and is refused.
    assert!(stays_true(Duration::from_millis(1_500), async || !has_heard(1, late)).await, "S25: told after revoking");
    assert!(!office.app.printed().contains(key.reveal()), "S13: a key is in the log");
    listeners[1].tell("end");
}
