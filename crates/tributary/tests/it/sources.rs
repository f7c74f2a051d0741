//! Syncs under fire: workers die at every step of one, and what is in memory equals what the provider has.

use std::time::Duration;

use domain::{Clock, JobKind, JobStatus, SourceId, SourceStatus, Transport};
use fakes::{Fakes, Manner};
use futures_util::{StreamExt as _, stream};
use rustix::process::Signal;
use store::crash::Point;
use testkit::process::{Start, Worker};
use testkit::sources::{HUBSPOT, settings};
use testkit::{Sources, cluster, wait_until};

use crate::app::{BINARY, resident_kb};

fn worker(t: &Sources, crash: Option<&str>) -> Worker {
    let settings = settings(&t.fakes);
    let env: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Worker::start(&Start { program: BINARY, args: &["worker"], database_url: &t.world.database.url, crash, env: &env })
}

async fn run(t: &Sources, sql: &'static str) {
    sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("done");
}

/// Nothing is on its way: no message, nothing marked.
async fn is_settled(t: &Sources) -> bool {
    let waiting = "select (select count(*) from pgmq.q_ingestion_queue) + (select count(*) from pgmq.q_client_facts)
                       + (select count(*) from pgmq.q_forget) + (select count(*) from tributary.dirty_clients)";
    t.count(waiting).await == 0
}

/// Holds memory against the provider's own list.
async fn check(t: &Sources, id: SourceId, after: &str) {
    let crm = t.fakes.hubspot();
    let mut expected: Vec<String> = [("contact", "contacts"), ("company", "companies"), ("deal", "deals")]
        .into_iter()
        .flat_map(|(name, kind)| crm.ids(kind).into_iter().map(move |id| format!("{name}:{id}")))
        .collect();
    expected.sort();
    assert_eq!(t.documents(id).await, expected, "I1 I2 after {after}");
    let clients = crm.count("contacts") + crm.count("companies");
    assert_eq!(t.count("select count(*) from client_intelligence").await, clients as i64, "clients after {after}");
    let strays = "select count(*) from document_chunks c full join memory.vectors_fast_256 v on v.chunk_id = c.id
                  where v.chunk_id is null or c.id is null";
    assert_eq!(t.count(strays).await, 0, "after {after}");
}

/// F1, F16, F23, F24, I1, I2, I4.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_of_a_sync_memory_equals_what_the_provider_has() {
    let is_of_a_sync =
        |point: &Point| ["pull.", "token.", "clients."].iter().any(|begins| point.name().starts_with(begins));
    let points: Vec<Point> = Point::ALL.iter().copied().filter(is_of_a_sync).collect();
    assert!(points.len() >= 7, "{points:?}");
    stream::iter(points).map(kill_at).buffer_unordered(2).collect::<Vec<()>>().await;
}

async fn kill_at(point: Point) {
    let t = Sources::with(cluster::cloned(), Clock::System, Fakes::with_fixtures().await, &[]).await;
    t.fakes.rotate(fakes::HUBSPOT, true);
    let id = t.connect(HUBSPOT).await;
    let clean = worker(&t, None);
    assert!(wait_until(Duration::from_secs(60), async || is_settled(&t).await).await, "the first sync does not end");
    drop(clean);

    // Some changed, some came, some went.
    let crm = t.fakes.hubspot();
    crm.fill_contacts(320);
    let ids = crm.ids("contacts");
    crm.archive("contacts", &ids[0]);
    crm.patch("companies", &crm.ids("companies")[0], serde_json::json!({ "industry": "FARMING" }));
    crm.archive("deals", &crm.ids("deals")[0]);
    if point.name().starts_with("token.") {
        run(&t, "update connected_sources set token_expires_at = now() where provider = 'hubspot'").await;
    }
    t.sync(id).await;
    // Asked for once more, as if that one had begun: it runs after it, wherever a worker dies.
    run(&t, "update sync_jobs set started_at = now() where status = 'pending'").await;
    t.sync_as(id, Some(JobKind::Full)).await;
    let mut hurt = worker(&t, Some(&format!("{}:abort:1", point.name())));
    let died = wait_until(Duration::from_secs(40), async || hurt.has_ended().is_some());
    assert!(died.await, "crash point {} was never reached: remove it, or reach it", point.name());
    // The lease of the dead worker has to pass; the test says that it has.
    run(&t, "update pgmq.q_ingestion_queue set vt = now()").await;
    run(&t, "update pgmq.q_client_facts set vt = now()").await;
    run(&t, "update connected_sources set refresh_until = now() where refresh_until is not null").await;
    let clean = worker(&t, None);
    let is_over = async || is_settled(&t).await;
    assert!(wait_until(Duration::from_secs(60), is_over).await, "I5: stuck after a kill at {}", point.name());
    let source = t.source(id).await;
    if source.status == SourceStatus::TokenRefreshFailed {
        // The pair was exchanged and lost with its worker: never a loop, never half a pair.
        assert!(["token.replied", "token.in_vault"].contains(&point.name()), "{}: {source:?}", point.name());
        assert_eq!(source.status_message.as_deref(), Some("refresh_outcome_unknown"), "{}", point.name());
        t.connect_over(HUBSPOT, Transport::Rest, Some(id)).await.expect("reconnected");
        assert!(wait_until(Duration::from_secs(60), is_over).await, "stuck after reconnecting");
    }
    check(&t, id, point.name()).await;
    let jobs: Vec<_> = t.jobs(id).await.into_iter().map(|job| (job.kind, job.status)).collect();
    let all = [JobKind::Full, JobKind::Delta, JobKind::Full].map(|kind| (kind, JobStatus::Completed));
    assert_eq!(jobs, all, "{}", point.name());
    drop(clean);
    println!("{}: {} documents, 0 lost, 0 doubled", point.name(), t.documents(id).await.len());
}

/// F31.
#[tokio::test(flavor = "multi_thread")]
async fn told_to_stop_in_the_middle_of_a_sync_a_worker_hands_it_back_whole() {
    let t = Sources::with(cluster::cloned(), Clock::System, Fakes::with_fixtures().await, &[]).await;
    t.fakes.hubspot().fill_contacts(2_000);
    t.fakes.set_latency("/hubspot", Duration::from_millis(60));
    let id = t.connect(HUBSPOT).await;
    let mut stopping = worker(&t, None);
    let is_under_way = async || t.documents(id).await.len() > 200;
    assert!(wait_until(Duration::from_secs(40), is_under_way).await, "it does not begin");
    stopping.signal(Signal::TERM);
    let status = stopping.ended_within(Duration::from_secs(15)).await.expect("it does not stop");
    assert!(status.success(), "{status}");
    let job = t.jobs(id).await.remove(0);
    if job.status != JobStatus::Completed {
        let held = "select count(*) from pgmq.q_ingestion_queue where headers ? 'by'";
        assert_eq!(t.count(held).await, 0, "a stopped worker holds the message");
    }
    t.fakes.behave();
    let _clean = worker(&t, None);
    assert!(wait_until(Duration::from_secs(90), async || is_settled(&t).await).await, "it does not go on");
    check(&t, id, "SIGTERM").await;
    assert_eq!(t.jobs(id).await[0].error_count, 0, "stopping cost an attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_worker_held_is_taken_over_long_before_its_lease_ends() {
    let t = Sources::with(cluster::cloned(), Clock::System, Fakes::with_fixtures().await, &[]).await;
    let id = t.connect(HUBSPOT).await;
    let mut hurt = worker(&t, Some("pull.fetched:abort"));
    assert!(wait_until(Duration::from_secs(40), async || hurt.has_ended().is_some()).await, "it lives");
    let _other = worker(&t, None);
    let is_over = async || t.jobs(id).await[0].status == domain::JobStatus::Completed;
    assert!(wait_until(Duration::from_secs(60), is_over).await, "it waits for the lease: {:?}", t.jobs(id).await[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_forgets_a_worker_leaves_the_rest_to_the_next() {
    let t = Sources::with(cluster::cloned(), Clock::System, Fakes::with_fixtures().await, &[]).await;
    t.fakes.hubspot().fill_contacts(700);
    let id = t.connect(HUBSPOT).await;
    let clean = worker(&t, None);
    assert!(wait_until(Duration::from_secs(60), async || is_settled(&t).await).await, "the first sync does not end");
    drop(clean);
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let counted = engine::pull::connect::forget(env, tenant, id, "test").await.expect("an answer").expect("a source");
    let mut hurt = worker(&t, Some("forget.before_commit:abort:2"));
    assert!(wait_until(Duration::from_secs(40), async || hurt.has_ended().is_some()).await, "never reached");
    run(&t, "update pgmq.q_forget set vt = now()").await;
    let _clean = worker(&t, None);
    let is_gone = async || t.count("select count(*) from connected_sources where provider = 'hubspot'").await == 0;
    assert!(wait_until(Duration::from_secs(60), is_gone).await, "it is still there");
    assert_eq!(t.count("select count(*) from source_documents").await, 0);
    let removed = "select (removed ->> 'documents')::bigint from forgotten";
    assert_eq!(t.count(removed).await, counted.documents, "counted twice, or not at all");
}

/// F20: a provider that sends a million rows gets its page refused, and the worker's memory stays what it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_million_rows_costs_a_worker_little_memory() {
    const MIB: u64 = 1_024; // kB
    let t = Sources::with(cluster::cloned(), Clock::System, Fakes::with_fixtures().await, &[]).await;
    let id = t.connect(HUBSPOT).await;
    let running = worker(&t, None);
    assert!(wait_until(Duration::from_secs(60), async || is_settled(&t).await).await, "the first sync does not end");
    let before = resident_kb(running.pid(), "VmHWM");
    // The first is below the limit of bytes and far over that of rows; the second is over both.
    for rows in [400_000, 1_000_000] {
        t.fakes.next("/hubspot/crm", Manner::Rows(rows));
        let job_id = t.sync_as(id, Some(JobKind::Full)).await;
        let told =
            async || t.jobs(id).await.into_iter().find(|job| job.id == job_id.0).map_or(0, |job| job.error_count);
        assert!(wait_until(Duration::from_secs(60), async || told().await >= 1).await, "F20: {rows} rows were taken");
        run(&t, "update pgmq.q_ingestion_queue set vt = now()").await;
        assert!(wait_until(Duration::from_secs(60), async || is_settled(&t).await).await, "the sync does not end");
    }
    let rise = resident_kb(running.pid(), "VmHWM").saturating_sub(before);
    assert!(rise < 96 * MIB, "F20: {rise} kB more");
    println!("a page of a million rows: {} MiB more", rise / MIB);
    check(&t, id, "a page of a million rows").await;
}
