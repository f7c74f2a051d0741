//! Providers that lie, stall, refuse and forget. Nothing is lost, doubled or stuck, and a person is told why.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use connectors::pull::{Account, Connector, Found, Identity, Page, PullError};
use domain::{Caller, JobKind, SourceId};
use engine::pull::{Providers, jobs};
use fakes::{Manner, RetryAfter};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use testkit::Sources;
use testkit::sources::{DRIVE, HUBSPOT, QUICKBOOKS};

pub const LISTS: &str = "/hubspot/crm";

/// Runs everything due once an hour, for this many hours.
pub async fn run_for_hours(t: &Sources, hours: usize) {
    let env = &t.world.env;
    for _ in 0..hours {
        t.run().await;
        env.clock.advance(TimeDelta::minutes(67)); // an hour, and some more so as not to come all at once
        let mut tx = env.db.begin().await.expect("a transaction");
        store::queue::unpark_due(&mut tx, env.clock.sql(), 500).await.expect("what waited longer than an hour");
        tx.commit().await.expect("committed");
    }
    t.run().await;
}

pub async fn whole(t: &Sources, id: SourceId) -> bool {
    let crm = t.fakes.hubspot();
    let n: usize = ["contacts", "companies", "deals"].iter().map(|kind| crm.count(kind)).sum();
    t.documents(id).await.len() == n
}

/// F19.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_none_costs_an_attempt_and_the_next_one_heals_it() {
    for manner in [
        Manner::Garbage,
        Manner::Html,
        Manner::WrongJson,
        Manner::Empty200,
        Manner::Truncated,
        Manner::CutJson,
        Manner::InvalidUtf8,
        Manner::Endless,
        Manner::Reset,
        Manner::DropReply,
        Manner::Status(500),
        Manner::Status(502),
        Manner::Status(503),
        Manner::Status(423),
    ] {
        let t = Sources::new().await;
        t.fakes.nth(LISTS, 3, manner.clone());
        let id = t.connect(HUBSPOT).await;
        t.run().await;
        let job = t.jobs(id).await.remove(0);
        assert_eq!((job.status.as_str(), job.error_count), ("pending", 1), "{manner:?}: {job:?}");
        let told = job.error_details[0]["what"].as_str().unwrap_or_default().to_owned();
        assert!(told.contains("HubSpot"), "{manner:?} is told as {told:?}");
        run_for_hours(&t, 1).await;
        let job = t.jobs(id).await.remove(0);
        assert_eq!(job.status.as_str(), "completed", "{manner:?}: {job:?}");
        assert!(whole(&t, id).await, "{manner:?}: something is missing");
        assert_eq!(t.source(id).await.status.as_str(), "active");
    }
}

/// F19.
#[tokio::test(flavor = "multi_thread")]
async fn odd_but_readable_answers_are_read() {
    for manner in [Manner::DuplicateKeys, Manner::NulInStrings, Manner::ShortPage, Manner::EmptyPage] {
        let t = Sources::new().await;
        t.fakes.nth(LISTS, 2, manner.clone());
        let id = t.connect(HUBSPOT).await;
        run_for_hours(&t, 1).await;
        assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{manner:?}");
        assert!(whole(&t, id).await, "{manner:?}: something is missing");
    }
}

/// F17.
#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_ask_for_patience_is_honoured_and_costs_no_attempt() {
    for (retry_after, least, most) in [
        (RetryAfter::Seconds(30), 30, 34),
        (RetryAfter::Date(45), 43, 51),
        (RetryAfter::Absent, 10, 12),
        (RetryAfter::Garbage, 10, 12),
        (RetryAfter::Negative, 10, 12),
        (RetryAfter::Huge, 3_601, 100_000),
    ] {
        let t = Sources::new().await;
        t.fakes.nth(LISTS, 2, Manner::RateLimited { retry_after });
        let id = t.connect(HUBSPOT).await;
        t.run().await;
        let job = t.jobs(id).await.remove(0);
        assert_eq!(
            (job.status.as_str(), job.error_count, job.items_failed),
            ("pending", 0, 0),
            "{retry_after:?}: {job:?}"
        );
        assert_eq!(job.error_details[0]["kind"], "rate_limited", "{job:?}");
        let asked = t.fakes.requests(LISTS);
        let due: f64 = sqlx::query_scalar(
            "select extract(epoch from due - $1)::float8 from (
                 select vt as due from pgmq.q_ingestion_queue union all
                 select until from tributary.parked where queue = 'ingestion_queue') d",
        )
        .bind(t.world.env.clock.now())
        .fetch_one(&mut *t.world.conn().await)
        .await
        .expect("when it is due");
        assert!((f64::from(least)..=f64::from(most)).contains(&due), "{retry_after:?} is waited for {due} s");
        t.run().await;
        assert_eq!(t.fakes.requests(LISTS), asked, "{retry_after:?}: asked while it was told to wait");
        t.world.env.clock.advance(TimeDelta::seconds(due as i64 + 1));
        let mut tx = t.world.env.db.begin().await.expect("a transaction");
        store::queue::unpark_due(&mut tx, t.world.env.clock.sql(), 10).await.expect("parked ones");
        tx.commit().await.expect("a commit");
        t.run().await;
        let job = t.jobs(id).await.remove(0);
        assert_eq!((job.status.as_str(), job.error_count), ("completed", 0), "{retry_after:?}: {job:?}");
        assert!(whole(&t, id).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fifth_failure_is_a_dead_letter_and_five_waits_are_none() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    t.fakes.next_n(LISTS, 5, Manner::RateLimited { retry_after: RetryAfter::Seconds(30) });
    for _ in 0..5 {
        t.run().await;
        t.world.env.clock.advance(TimeDelta::seconds(40));
    }
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.error_count), ("pending", 0), "five waits: {job:?}");

    t.fakes.always(LISTS, Some(Manner::Status(503)));
    run_for_hours(&t, 8).await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!(
        (job.status.as_str(), job.error_message.as_deref()),
        ("failed", Some("max_retries_exceeded")),
        "{job:?}"
    );
    assert_eq!(job.error_count, 5, "{job:?}");
    assert_eq!(t.count("select count(*) from pgmq.a_ingestion_queue").await, 1);
    assert_eq!(t.count("select count(*) from pgmq.q_ingestion_queue").await, 0);
    assert_eq!(t.source(id).await.status.as_str(), "active", "a provider that is down is no reason to reconnect");

    // One button: it goes on from where it was.
    t.fakes.behave();
    let caller = Caller::local("test", t.world.tenant_id, true);
    assert!(jobs::retry(&t.world.env, &caller, domain::JobId(job.id)).await.expect("an answer"));
    run_for_hours(&t, 2).await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");
    assert!(whole(&t, id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_got_on_is_not_given_up_at_its_next_hiccup() {
    let t = Sources::new().await;
    // Nothing is read four times; the fifth claim reads a page before it fails.
    t.fakes.next_n(LISTS, 4, Manner::Status(503));
    t.fakes.nth(LISTS, 7, Manner::Status(503));
    let id = t.connect(HUBSPOT).await;
    for _ in 0..4 {
        t.run().await;
        t.world.env.clock.advance(TimeDelta::minutes(61));
    }
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.error_count), ("pending", 5), "{job:?}");
    assert!(!t.documents(id).await.is_empty(), "the fifth claim read nothing");
    run_for_hours(&t, 1).await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");
    assert!(whole(&t, id).await);
}

/// Panics in the middle of a pass.
struct Panics;

impl Connector for Panics {
    fn document_types(&self) -> &'static [&'static str] {
        &[]
    }

    fn cursor<'a>(&'a self, _: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        Box::pin(async { Ok(None) })
    }

    fn full<'a>(&'a self, _: &'a Account<'a>, _: Option<&'a Value>, _: bool) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(async { panic!("as the test wants it") })
    }

    fn delta<'a>(
        &'a self,
        _: &'a Account<'a>,
        _: &'a Value,
        _: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(async { Err(PullError::CursorLost("it has no changes")) })
    }

    fn find<'a>(&'a self, _: &'a Account<'a>, _: &'a [String]) -> BoxFuture<'a, Result<Found, PullError>> {
        Box::pin(async { Ok((Vec::new(), Vec::new())) })
    }

    fn identify<'a>(&'a self, _: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async { Ok(Identity { account: "nobody".into(), name: "nobody".into() }) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connector_that_panics_is_a_failed_attempt_and_at_last_a_dead_letter() {
    let mut t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    let env = &t.world.env;
    let providers = Providers::from_config(&env.config, &env.http).expect("providers");
    t.world.env.providers = Arc::new(providers.with_connector(HUBSPOT, Arc::new(Panics)));
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.error_count), ("pending", 1), "{job:?}");
    assert!(job.error_details[0]["what"].as_str().is_some_and(|what| what.contains("panicked")), "{job:?}");
    run_for_hours(&t, 5).await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "failed");
}

/// I4.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_deletes_no_message_and_leaves_nothing() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    let sql = "create function boom() returns trigger language plpgsql as 'begin raise exception ''boom''; end';
               create trigger boom before insert on document_mentions for each row when (new.external_id like 'company:%') execute function boom()";
    let admin = t.world.database.admin.uri();
    let mut admin = <sqlx::PgConnection as sqlx::Connection>::connect(admin.reveal()).await.expect("a session");
    sqlx::raw_sql(sql).execute(&mut admin).await.expect("a trigger");
    t.run().await;
    assert_eq!(t.count("select count(*) from pgmq.q_ingestion_queue").await, 1, "the message is gone");
    let companies = "select count(*) from source_documents where external_id like 'company:%'";
    assert_eq!(t.count(companies).await, 0, "half a page was kept");
    sqlx::raw_sql("drop trigger boom on document_mentions").execute(&mut admin).await.expect("no trigger");
    run_for_hours(&t, 2).await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");
    assert!(whole(&t, id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_be_written_is_one_dead_letter_and_holds_up_none_before_it() {
    let t = Sources::new().await;
    let sql = "create function boom() returns trigger language plpgsql as 'begin raise exception ''boom''; end';
               create trigger boom before insert on client_intelligence for each row when (new.external_id like 'contact:%') execute function boom()";
    let admin = t.world.database.admin.uri();
    let mut admin = <sqlx::PgConnection as sqlx::Connection>::connect(admin.reveal()).await.expect("a session");
    sqlx::raw_sql(sql).execute(&mut admin).await.expect("a trigger");
    t.connect(HUBSPOT).await;
    run_for_hours(&t, 9).await;
    let dead = "select count(*) from pgmq.a_client_facts";
    assert_eq!(t.count(dead).await, 1);
    let companies = i64::try_from(t.fakes.hubspot().count("companies")).expect("a count");
    assert_eq!(t.count("select count(*) from client_intelligence").await, companies, "those before it are missing");
    let sql = "update connected_sources set next_sync_at = null"; // no sync marks it meanwhile
    sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("no next sync");
    let mut tx = t.world.env.db.begin().await.expect("a transaction");
    let upkeep = store::queue::Queue::new("upkeep").expect("a queue");
    upkeep.send(&mut tx, t.world.tenant_id, &[json!({ "task": "syncs" })]).await.expect("sent");
    tx.commit().await.expect("a commit");
    t.run().await;
    assert_eq!(t.count("select count(*) from pgmq.q_client_facts").await, 0, "it is tried for ever");
    assert_eq!(t.count(dead).await, 1);
}

/// F16.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_token_that_repeats_or_is_lost_ends_no_job_in_a_loop() {
    for manner in [Manner::RepeatToken, Manner::LostToken] {
        let t = Sources::new().await;
        t.fakes.hubspot().fill_contacts(350);
        let before = t.fakes.requests(LISTS);
        t.fakes.always("/hubspot/crm/objects/2026-03/contacts", Some(manner.clone()));
        let id = t.connect(HUBSPOT).await;
        t.run().await;
        assert!(t.fakes.requests(LISTS) - before < 20, "{manner:?}: {} requests", t.fakes.requests(LISTS) - before);
        t.fakes.behave();
        run_for_hours(&t, 2).await;
        assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{manner:?}");
        assert!(whole(&t, id).await, "{manner:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quickbooks_says_fault_with_200_and_drive_403_for_patience() {
    let t = Sources::new().await;
    let quickbooks = t.connect(QUICKBOOKS).await;
    t.fakes.next("/quickbooks", Manner::FaultWith200);
    t.run().await;
    assert_eq!(t.jobs(quickbooks).await[0].error_count, 1, "a Fault passed for a page");
    run_for_hours(&t, 1).await;
    assert_eq!(t.jobs(quickbooks).await[0].status.as_str(), "completed");
    let drive = t.connect(DRIVE).await;
    t.fakes.nth("/drive/v3/files", 2, Manner::RateLimitedAs403);
    t.run().await;
    let job = t.jobs(drive).await.remove(0);
    assert_eq!((job.error_count, job.error_details[0]["kind"].as_str()), (0, Some("rate_limited")), "{job:?}");
    run_for_hours(&t, 1).await;
    assert_eq!(t.jobs(drive).await[0].status.as_str(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_months_quota_that_is_used_up_is_asked_about_once_an_hour_and_told() {
    let t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    t.fakes.always("/quickbooks", Some(Manner::DailyLimit { retry_after: RetryAfter::Absent }));
    let asked = t.fakes.requests("/quickbooks");
    for _ in 0..10 {
        t.run().await;
        t.world.env.clock.advance(TimeDelta::seconds(90));
    }
    assert_eq!(t.fakes.requests("/quickbooks") - asked, 3, "asked again and again");
    let told = "select count(*) from source_events where what like '%quota of the day or month%' and tone = 'trouble'";
    assert_eq!(t.count(told).await, 1, "nobody was told");
    run_for_hours(&t, 3).await;
    assert!(t.fakes.requests("/quickbooks") - asked < 8, "{} requests", t.fakes.requests("/quickbooks") - asked);
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.error_count), ("pending", 0), "{job:?}");

    t.fakes.behave();
    run_for_hours(&t, 2).await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");
    // A limit of a minute, later on, is one again.
    t.fakes.next("/quickbooks", Manner::RateLimited { retry_after: RetryAfter::Absent });
    t.sync(id).await;
    t.run().await;
    t.world.env.clock.advance(TimeDelta::seconds(90));
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");
}

/// F17.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_a_few_seconds_are_no_quota_of_a_month() {
    let t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    t.fakes.always("/quickbooks", Some(Manner::RateLimited { retry_after: RetryAfter::Seconds(1) }));
    for _ in 0..5 {
        t.run().await;
        t.world.env.clock.advance(TimeDelta::seconds(2));
    }
    assert_eq!(t.jobs(id).await[0].status.as_str(), "pending");
    t.fakes.behave();
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");
}

/// F17.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_keeps_failing_is_left_alone_for_a_while() {
    let t = Sources::new().await;
    let (one, other) = (t.connect(HUBSPOT).await, {
        t.fakes.as_account(fakes::HUBSPOT, "second");
        t.connect(HUBSPOT).await
    });
    t.fakes.always(LISTS, Some(Manner::Status(503)));
    while t.fakes.requests(LISTS) < 5 {
        t.run().await;
        t.world.env.clock.advance(TimeDelta::seconds(20)); // longer than the pause after a failure, shorter than the breaker's
    }
    let asked = t.fakes.requests(LISTS);
    t.run().await;
    assert_eq!(t.fakes.requests(LISTS), asked, "the breaker is not open");
    t.fakes.behave();
    run_for_hours(&t, 2).await;
    for id in [one, other] {
        assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_for_two_minutes_ends_no_job() {
    for path in [LISTS, "/oauth/hubspot/token"] {
        let t = Sources::new().await;
        let id = t.connect(HUBSPOT).await;
        let sql = "update connected_sources set token_expires_at = null where provider = 'hubspot'";
        sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("a stale token");
        t.fakes.always(path, Some(Manner::Status(503)));
        for _ in 0..6 {
            t.run().await;
            t.world.env.clock.advance(TimeDelta::seconds(20));
        }
        let job = t.jobs(id).await.remove(0);
        assert_eq!(job.status.as_str(), "pending", "{path}: {job:?}");
        t.fakes.behave();
        run_for_hours(&t, 1).await;
        assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_sync_that_was_given_up_is_tried_again_at_night() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    t.fakes.always(LISTS, Some(Manner::Status(503)));
    run_for_hours(&t, 8).await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "failed");
    t.fakes.behave();
    let (env, next) = (&t.world.env, t.source(id).await.next_sync_at.expect("a night"));
    env.clock.advance((next - env.clock.now()).max(TimeDelta::zero()) + TimeDelta::seconds(1));
    assert_eq!(jobs::sync_due(env).await.expect("syncs"), 1);
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{:?}", t.jobs(id).await[0]);
}

/// F18.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_frees_its_slot() {
    let t = Sources::new().await;
    t.fakes.next(LISTS, Manner::Slow { per_byte: Duration::from_secs(10) });
    let id = t.connect(HUBSPOT).await;
    let began = std::time::Instant::now();
    t.run().await;
    assert!(began.elapsed() < Duration::from_secs(70), "it was waited for {:?}", began.elapsed());
    assert_eq!(t.jobs(id).await[0].error_count, 1);
    assert_eq!(json!(t.jobs(id).await[0].kind), json!(JobKind::Full));
}
