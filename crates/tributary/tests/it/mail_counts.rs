//! A mailbox's count under fire: workers die at every step of one, and the line is as red and as green as ever.

use std::time::Duration;

use domain::mail::check::CheckState;
use domain::{Clock, SourceId};
use engine::mail::check;
use fakes::Fakes;
use futures_util::{StreamExt as _, stream};
use store::crash::Point;
use store::mail::checks::Check;
use testkit::process::{Start, Worker};
use testkit::sources::{OUTLOOK, settings};
use testkit::{Sources, cluster, wait_until};

use crate::app::BINARY;

fn worker(t: &Sources, crash: Option<&str>) -> Worker {
    let settings = settings(&t.fakes);
    let env: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Worker::start(&Start { program: BINARY, args: &["worker"], database_url: &t.world.database.url, crash, env: &env })
}

/// Nobody waits for a day, and no sync is on its way.
async fn is_settled(t: &Sources) -> bool {
    let waiting = "select (select count(*) from pgmq.q_ingestion_queue) + (select count(*) from pgmq.q_mailbox_check)
                       + (select count(*) from mailbox_checks where asked_at is not null)";
    t.count(waiting).await == 0
}

async fn settles(t: &Sources, when: &str) {
    let is_settled = wait_until(Duration::from_secs(90), async || is_settled(t).await);
    assert!(is_settled.await, "I5: stuck {when}");
}

/// F1, I1, I5.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_of_a_count_a_mailbox_is_as_red_and_as_green_as_ever() {
    let points: Vec<Point> = Point::ALL.iter().copied().filter(|point| point.name().starts_with("check.")).collect();
    assert_eq!(points.len(), 3, "{points:?}");
    stream::iter(points).map(kill_at).buffer_unordered(2).collect::<Vec<()>>().await;
}

async fn kill_at(point: Point) {
    let flags = ["--pull-rate-factor", "1000"];
    let t = Sources::with(cluster::cloned(), Clock::System, Fakes::start().await, &flags).await;
    t.fakes.outlook().fill(60, 3); // one a minute until now
    let id = t.connect(OUTLOOK).await;
    let clean = worker(&t, None);
    settles(&t, "before anything was killed").await;
    drop(clean);
    let lost: String = sqlx::query_scalar(
        "delete from source_documents where id = (select id from source_documents
             where document_type = 'outlook.message' order by source_created_at limit 1) returning external_id",
    )
    .fetch_one(&mut *t.world.conn().await)
    .await
    .expect("a letter");

    let caller = t.world.operator().await;
    let env = &t.world.env;
    check::ask(env, &caller, id, &[]).await.expect("asked");
    let mut hurt = worker(&t, Some(&format!("{}:abort:1", point.name())));
    let died = wait_until(Duration::from_secs(40), async || hurt.has_ended().is_some());
    assert!(died.await, "crash point {} was never reached: remove it, or reach it", point.name());
    // The lease of the dead worker has to pass; the test says that it has.
    for queue in ["mailbox_check", "ingestion_queue"] {
        let due = sqlx::AssertSqlSafe(format!("update pgmq.q_{queue} set vt = now()"));
        sqlx::raw_sql(due).execute(&mut *t.world.conn().await).await.expect("due");
    }
    let clean = worker(&t, None);
    settles(&t, &format!("after a kill at {}", point.name())).await;
    let red = differing(&t, id).await;
    assert_eq!(red.iter().flat_map(|check| check.missing.clone()).collect::<Vec<_>>(), [lost], "{}", point.name());
    check::fetch_missing(env, &caller, id, red[0].day).await.expect("fetched");
    settles(&t, "while it is fetched").await;
    assert!(differing(&t, id).await.is_empty(), "{}", point.name());
    assert_eq!(t.documents(id).await.len(), 60, "nothing is lost or doubled after a kill at {}", point.name());
    drop(clean);
}

async fn differing(t: &Sources, id: SourceId) -> Vec<Check> {
    let caller = t.world.operator().await;
    let mut days = check::days(&t.world.env, &caller, id, 90).await.expect("days");
    days.retain(|check| check.state == CheckState::Differs);
    days
}
