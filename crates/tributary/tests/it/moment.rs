//! A database is put back to a moment: what came before is there, what came after is not, and sending that again has one effect each.

use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use store::queue::Receipt;
use store::vault::Vault;
use testkit::cluster::kill;
use testkit::wait_until;

use crate::app::{App, Folder, client, command, free_port, run};

const SOON: Duration = Duration::from_secs(60);

fn text(folder: &Folder) -> &str {
    folder.0.to_str().expect("a path")
}

/// The running database of a folder, as its login.
async fn connect(folder: &Folder) -> PgConnection {
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).expect("a file").trim().to_owned();
    let url = format!("postgres://tributary:{}@127.0.0.1:{}/tributary", read("login.password"), read("postgres.port"));
    let mut conn = PgConnection::connect(&url).await.expect("a connection");
    sqlx::query("set role service_role").execute(&mut conn).await.expect("a role");
    conn
}

async fn number(conn: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(conn).await.expect(sql)
}

/// A process that keeps the WAL until it is told to stop.
struct Keeper(Child);

impl Keeper {
    fn start(here: &Folder, backup: &Folder) -> Self {
        let mut keep = command(&here.0, free_port());
        keep.args(["backup", text(backup), "--wal", "--with-master-key"]).stdout(Stdio::null()).stderr(Stdio::null());
        Self(keep.spawn().expect("the binary"))
    }

    /// As kill -9: its receiver goes on without it.
    fn kill(mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    async fn stop(mut self) {
        kill(self.0.id(), Signal::TERM);
        let status = self.0.wait().expect("its end");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server's process that sends WAL to a keeper's receiver; none: nobody receives.
async fn sender(conn: &mut PgConnection) -> Option<i32> {
    let sql = "select active_pid from pg_replication_slots where slot_name like 'tributary_backup_%' and active";
    sqlx::query_scalar(sql).fetch_optional(conn).await.expect(sql)
}

/// Sends numbered events, each with its own key. Returns the answers.
async fn send(app: &App, channel: &Value, numbers: std::ops::Range<u32>) -> Vec<u16> {
    let url = channel["url"].as_str().expect("a URL");
    let door = format!("{}{}", app.url, &url[url.find("/ingest/").expect("a path")..]);
    let mut answers = Vec::new();
    for n in numbers {
        let sent = client().post(&door).bearer_auth(channel["bearer"].as_str().expect("a secret"));
        let sent = sent.header("idempotency-key", format!("event-{n}"));
        let sent = sent.json(&json!({ "type": "note", "content": format!("event number {n}") })).send().await;
        answers.push(sent.expect("an answer").status().as_u16());
    }
    answers
}

/// F39: a restore to an earlier moment, then everything is sent again, and old receipts are refused.
#[tokio::test(flavor = "multi_thread")]
async fn restored_to_a_moment_it_has_what_was_before_and_takes_the_rest_once_more() {
    let (here, there, backup) = (Folder::new(), Folder::new(), Folder::new());
    let port = free_port();
    let app = App::start(command(&here.0, port), &["up"], port).await;
    let (_, key, told) = run(command(&here.0, port).args(["key", "create", "test", "--scopes", "service"]));
    let made = client().post(format!("{}/api/v1/channels", app.url)).bearer_auth(key.trim());
    let made = made.json(&json!({ "name": "shop", "max_per_minute": null })).send().await.expect("an answer");
    let channel: Value = made.json().await.unwrap_or_else(|error| panic!("{error}: {told}"));

    // A base copy, and the WAL after it.
    let mut conn = connect(&here).await;
    let keeper = Keeper::start(&here, &backup);
    // The base copy has a sender of its own; `backup.json` comes after it.
    let is_kept = async || backup.0.join("backup.json").exists() && sender(&mut conn).await.is_some();
    assert!(wait_until(SOON, is_kept).await, "nothing is kept");
    assert!(send(&app, &channel, 0..10).await.iter().all(|status| *status == 202));
    // It may be killed and go on. What it left behind is ended first.
    let first = sender(&mut conn).await;
    keeper.kill();
    let keeper = Keeper::start(&here, &backup);
    let is_second = async || sender(&mut conn).await.is_some_and(|pid| Some(pid) != first);
    assert!(wait_until(SOON, is_second).await, "it does not go on");
    let (output, _, told) = run(command(&here.0, port).args(["backup", text(&backup), "--wal"]));
    assert!(!output.status.success() && told.contains("stop it first"), "two keep one folder: {told}");
    // The master key is rotated meanwhile: rows of the new key follow in the WAL.
    let old = Vault::open_file(&here.0.join("master.key")).expect("a key").key_id();
    let (output, _, told) = run(command(&here.0, port).args(["key", "rotate-master"]));
    assert!(output.status.success(), "{told}");
    let new = Vault::open_file(&here.0.join("master.key")).expect("a key").key_id();
    let kept = async || {
        let keys = Vault::open_file(&backup.0.join("master.key")).expect("keys");
        keys.opens(&old) && keys.key_id() == new
    };
    assert!(wait_until(SOON, kept).await, "the backup does not have the new key, or no longer the old one");
    let is_remembered = "select count(*) from source_documents where text like '%event number%'";
    assert!(wait_until(SOON, async || number(&mut conn, is_remembered).await == 10).await, "not remembered");
    sqlx::query("insert into pgmq.q_embed (vt, message) values ('2100-01-01', '{\"mark\": 1}')")
        .execute(&mut conn)
        .await
        .expect("a message");
    let moment: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("select clock_timestamp()").fetch_one(&mut conn).await.expect("a time");
    tokio::time::sleep(Duration::from_millis(50)).await; // the moment lies between two commits
    assert!(send(&app, &channel, 10..20).await.iter().all(|status| *status == 202));
    // Receipts from after the moment: of a message that was there, and of one that came later.
    sqlx::query("update pgmq.q_embed set read_ct = 1").execute(&mut conn).await.expect("claimed");
    sqlx::query("insert into pgmq.q_embed (vt, read_ct, message) values ('2100-01-01', 1, '{\"mark\": 2}')")
        .execute(&mut conn)
        .await
        .expect("a message");
    let late: Vec<(i64, i32)> = sqlx::query_as("select msg_id, read_ct from pgmq.q_embed where message ? 'mark'")
        .fetch_all(&mut conn)
        .await
        .expect("receipts");
    assert_eq!(late.len(), 2);
    keeper.stop().await;
    // A folder that is no longer kept costs the server nothing.
    let (output, said, told) = run(command(&here.0, port).args(["backup", text(&backup), "--wal", "--end"]));
    assert!(output.status.success() && said.contains("keeps no more WAL"), "{said}{told}");
    assert_eq!(number(&mut conn, "select count(*) from pg_replication_slots").await, 0);
    let (output, _, told) = run(command(&here.0, port).args(["backup", text(&backup), "--wal"]));
    assert!(!output.status.success() && told.contains("take a new backup"), "{told}");
    drop(conn);
    drop(app);
    run(command(&here.0, port).args(["down"]));

    let (output, _, told) =
        run(command(&there.0, port).args(["restore", text(&backup), "--until", "2020-01-01T00:00:00Z"]));
    assert!(!output.status.success(), "it went to a moment before its copy: {told}");
    // The right key may lie there already. It is another one than the copy's.
    std::fs::copy(here.0.join("master.key"), there.0.join("master.key")).expect("the new key");
    let until = moment.to_rfc3339();
    let (output, _, told) = run(command(&there.0, port).args(["restore", text(&backup), "--until", &until]));
    assert!(output.status.success() && !told.contains("WARNING"), "{told}");
    let port = free_port();
    let app = App::start(command(&there.0, port), &["up"], port).await;
    let mut conn = connect(&there).await;
    assert_eq!(number(&mut conn, "select count(*) from activities").await, 10, "the moment is another one");
    // Old receipts fit nothing here, also after the messages were claimed as often as there.
    sqlx::query("update pgmq.q_embed set read_ct = 1 where message ? 'mark'")
        .execute(&mut conn)
        .await
        .expect("claimed");
    sqlx::query("insert into pgmq.q_embed (vt, read_ct, message) values ('2100-01-01', 1, '{\"mark\": 3}')")
        .execute(&mut conn)
        .await
        .expect("a message");
    let queue = store::queue::Queue::new("embed").expect("a queue");
    for (msg_id, read_ct) in late {
        let is_ours = queue.finish(&mut conn, Receipt { msg_id, read_ct }).await.expect("an answer");
        assert!(!is_ours, "F39: receipt {msg_id} from after the moment was accepted");
    }
    assert_eq!(number(&mut conn, "select count(*) from pgmq.q_embed where message ? 'mark'").await, 2);
    // Senders that had no answer, or are not sure, send everything again.
    assert!(send(&app, &channel, 0..20).await.iter().all(|status| (200..300).contains(status)));
    assert!(send(&app, &channel, 5..15).await.iter().all(|status| (200..300).contains(status)));
    assert_eq!(number(&mut conn, "select count(*) from activities").await, 20, "I2: one effect each");
    assert!(wait_until(SOON, async || number(&mut conn, is_remembered).await == 20).await, "I1: not remembered");
    assert_eq!(
        number(&mut conn, "select count(*) from (select event_key from activities group by 1 having count(*) > 1) d")
            .await,
        0
    );
}

/// F39: a whole backup too, and a database that was restored by other means.
#[tokio::test(flavor = "multi_thread")]
async fn after_any_restore_every_number_is_new() {
    let (here, there, backup) = (Folder::new(), Folder::new(), Folder::new());
    let port = free_port();
    let done = |folder: &Folder, args: &[&str]| {
        let (output, _, told) = run(command(&folder.0, port).args(args));
        assert!(output.status.success(), "{args:?}: {told}");
    };
    done(&here, &["migrate"]);
    done(&here, &["backup", text(&backup), "--with-master-key"]);
    let (output, _, told) = run(command(&there.0, port).args(["restore", text(&backup), "--until", "latest"]));
    assert!(!output.status.success() && told.contains("has no WAL"), "{told}");
    assert!(!there.0.join("postgres").exists(), "everything was copied before it was refused");
    done(&there, &["restore", text(&backup)]);
    let marker = there.0.join("restore.renew");
    assert!(marker.exists(), "nobody would renew it");
    let _app = App::start(command(&there.0, port), &["up"], port).await;
    assert!(!marker.exists(), "it works on a database that was not renewed");
    let mut conn = connect(&there).await;
    let send = "insert into pgmq.q_embed (vt, message) values ('2100-01-01', '{}') returning msg_id";
    let sent = number(&mut conn, send).await;
    assert!(sent > 1_000_000_000_000_000, "F39: message {sent} may have been given out before the restore");
    done(&there, &["migrate", "--restored"]);
    let renewed = number(&mut conn, "select max(msg_id) from pgmq.q_embed").await;
    assert!(renewed > sent, "F39: {renewed} after {sent}");
}
