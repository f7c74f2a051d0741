//! Mailboxes under fire: whatever process dies at whatever step, what was told of is read, and the provider goes on telling.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use domain::{Clock, SourceId, SourceStatus};
use engine::pull::Provider;
use fakes::Fakes;
use futures_util::{StreamExt as _, stream};
use store::crash::Point;
use testkit::process::{Start, Worker};
use testkit::sources::settings;
use testkit::{Sources, cluster, wait_until};

use crate::app::{App, BINARY, Folder, command, free_port, run};
use crate::intake::MASTER_KEY;

const WORD: &str = "correct-horse-battery";
const TOPIC: &str = "projects/fakes/topics/gmail";
const LONG: Duration = Duration::from_secs(90);

struct Mail {
    t: Sources,
    id: SourceId,
    folder: Folder,
    port: u16,
}

fn more() -> [(String, String); 3] {
    [("GMAIL_PUBSUB_TOPIC", TOPIC), ("GMAIL_PUBSUB_TOKEN", WORD), ("MAILBOX_REST_SECS", "0")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

impl Mail {
    /// A mailbox that is connected and was read once, and whose provider posts to a server that is not there yet.
    async fn new() -> Self {
        let t = Sources::with(cluster::cloned(), Clock::System, Fakes::start().await, &["--gmail-pubsub-topic", TOPIC])
            .await;
        let gmail: Provider = t.world.env.providers.named("gmail").expect("a provider");
        t.fakes.gmail().receive("Ana Quill <ana@larkfield.example>", "Two lifts", "We need two lifts from March.");
        let (folder, port) = (Folder::new(), free_port());
        t.fakes.pubsub().push_to(&format!("http://127.0.0.1:{port}/webhooks/gmail"), WORD);
        let id = t.connect(gmail).await;
        t.run().await;
        Self { t, id, folder, port }
    }

    fn worker(&self, crash: Option<&str>) -> Worker {
        let settings: Vec<(String, String)> = settings(&self.t.fakes).into_iter().chain(more()).collect();
        let env: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let database_url = &self.t.world.database.url;
        Worker::start(&Start { program: BINARY, args: &["worker"], database_url, crash, env: &env })
    }

    fn command(&self, crash: Option<&str>) -> std::process::Command {
        let mut command = command(&self.folder.0, self.port);
        command.env("DATABASE_URL", &self.t.world.database.url).env("MASTER_KEY", MASTER_KEY);
        command.envs(settings(&self.t.fakes)).envs(more());
        if let Some(crash) = crash {
            command.env("TRIBUTARY_CRASH", crash);
        }
        command
    }

    async fn serve(&self) -> App {
        App::start(self.command(None), &["serve"], self.port).await
    }

    async fn sql(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&mut *self.t.world.conn().await).await.expect("done");
    }

    /// The times have come for which nobody waits here: of schedules, and of leases of the dead.
    async fn hurry(&self) {
        self.sql("update tributary.schedules set next_run_at = now() where name like 'mail_%' and next_run_at > now()")
            .await;
        self.sql("update pgmq.q_ingestion_queue set vt = now() where vt > now() and (headers ->> 'by') is null").await;
    }

    async fn is_told_of(&self) -> bool {
        let source = self.t.source(self.id).await;
        source.status == SourceStatus::Active && source.subscription_expires_at.is_some()
    }

    async fn letters(&self) -> Vec<String> {
        let documents = self.t.documents(self.id).await.into_iter();
        documents.filter_map(|name| name.strip_prefix("message:").map(str::to_owned)).collect()
    }

    /// Nothing was missed, nothing doubled, nothing is on its way.
    async fn is_whole(&self) -> bool {
        let waiting = "select (select count(*) from pending_syncs) + (select count(*) from pgmq.q_ingestion_queue)";
        self.letters().await == self.t.fakes.gmail().readable_ids() && self.t.count(waiting).await == 0
    }

    async fn until(&self, what: &str, is_true: impl AsyncFn() -> bool) {
        let done = wait_until(LONG, async || {
            self.hurry().await;
            is_true().await
        });
        assert!(done.await, "{what}: {:?} {:?}", self.t.source(self.id).await, self.t.jobs(self.id).await.first());
    }
}

/// F1, F27, I1, I2, I5.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_of_a_mailbox_nothing_that_was_told_is_missed() {
    let points: Vec<Point> = Point::ALL.iter().copied().filter(|point| point.name().starts_with("mail.")).collect();
    assert!(points.len() >= 9, "{points:?}");
    stream::iter(points).map(kill_at).buffer_unordered(2).collect::<Vec<()>>().await;
}

async fn kill_at(point: Point) {
    let mail = Mail::new().await;
    let (name, crash) = (point.name(), format!("{}:abort:1", point.name()));
    let gmail = mail.t.fakes.gmail();
    let write = |subject: &str| gmail.receive("Ana Quill <ana@larkfield.example>", subject, "And a loader.");
    let server;
    let mut clean;
    match point {
        Point::MailUnsubscribed => {
            clean = mail.worker(None);
            mail.until("it is not told of", async || mail.is_told_of().await).await;
            mail.until("it is not read", async || mail.is_whole().await).await;
            let forget = |crash: Option<&str>| {
                let mut command = mail.command(crash);
                run(command.args(["source", "forget", "gmail", "--keep", "--yes"])).0.status
            };
            assert_eq!(forget(Some(&crash)).signal(), Some(9), "crash point {name} was never reached");
            assert!(gmail.watched_until().is_none(), "its provider goes on");
            assert!(forget(None).success(), "it cannot be let go a second time");
            assert_eq!(mail.t.source(mail.id).await.status, SourceStatus::Disconnected);
            drop(clean);
            return;
        }
        Point::MailHeard | Point::MailBeforeAnswer => {
            clean = mail.worker(None);
            mail.until("it is not told of", async || mail.is_told_of().await).await;
            mail.until("it is not read", async || mail.is_whole().await).await;
            let mut hurt = App::spawn(mail.command(Some(&crash)), &["serve"], mail.port); // it may die before it is ready
            write("Of which a dying server hears");
            assert!(hurt.ended_within(LONG).await.is_some(), "crash point {name} was never reached");
            drop(hurt);
            server = mail.serve().await;
        }
        _ => {
            server = mail.serve().await;
            let mut hurt = mail.worker(Some(&crash));
            if point == Point::MailStarted {
                mail.sql("insert into pending_syncs (source_id, tenant_id) select id, tenant_id from connected_sources where provider = 'gmail'").await;
            }
            let died = wait_until(LONG, async || {
                mail.hurry().await;
                hurt.has_ended().is_some()
            });
            assert!(died.await, "crash point {name} was never reached: remove it, or reach it");
            // The leases of the dead have to pass; the test says that they have.
            mail.sql("update pgmq.q_ingestion_queue set vt = now(); update pgmq.q_upkeep set vt = now()").await;
            mail.sql("update connected_sources set subscription_due_at = null where subscription_expires_at is null")
                .await;
            clean = mail.worker(None);
        }
    }
    mail.until("it is not told of", async || mail.is_told_of().await).await;
    write("Of which a living server hears");
    mail.until("something is missing", async || mail.is_whole().await).await;
    assert!(clean.has_ended().is_none(), "the worker ended");
    drop(server);
    println!(
        "{name}: {} letters, 0 missed, 0 doubled, {} notices",
        mail.letters().await.len(),
        mail.t.fakes.pubsub().n_published()
    );
}
