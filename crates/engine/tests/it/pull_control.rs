//! People who revoke, pause, resume, cancel and disconnect while a job runs: it does as it is told, and nothing is missing afterwards.

use std::time::Duration;

use chrono::TimeDelta;
use domain::Caller;
use engine::pull::{connect, jobs};
use fakes::Manner;
use testkit::Sources;
use testkit::sources::HUBSPOT;

use crate::pull_faults::{LISTS, run_for_hours, whole};

/// F21, S23.
#[tokio::test(flavor = "multi_thread")]
async fn revoked_in_the_middle_it_shows_reconnect_and_nothing_is_missing_afterwards() {
    let t = Sources::new().await;
    t.fakes.hubspot().fill_contacts(450);
    let id = t.connect(HUBSPOT).await;
    // The pages go on until the token is refused.
    t.fakes.nth("/hubspot/crm/objects/2026-03/contacts", 3, Manner::Status(401));
    let tokens = t.fakes.requests("/oauth/hubspot/token");
    t.run().await;
    assert_eq!(t.fakes.requests("/oauth/hubspot/token"), tokens, "a fresh pair that is refused was refreshed");
    let (source, job) = (t.source(id).await, t.jobs(id).await.remove(0));
    assert_eq!(source.status.as_str(), "token_refresh_failed");
    assert_eq!(source.status_message.as_deref(), Some("unauthorized_after_refresh"));
    assert_eq!(
        (job.status.as_str(), job.error_message.as_deref()),
        ("failed", Some("unauthorized_after_refresh")),
        "{job:?}"
    );
    assert!(job.checkpoint_data["place"].is_object(), "the place is lost: {job:?}");
    assert_eq!(t.count("select count(*) from pgmq.q_ingestion_queue").await, 0, "it was requeued");
    let kept = t.documents(id).await.len();
    assert!(kept >= 100, "what was read is lost: {kept}");
    let asked = t.fakes.requests(LISTS);
    run_for_hours(&t, 30).await; // a night passes
    assert_eq!(t.fakes.requests(LISTS), asked, "a source that has to be reconnected was asked");

    // Another account is not this source.
    t.fakes.as_account(fakes::HUBSPOT, "somebody-else");
    let other = t.connect_over(HUBSPOT, domain::Transport::Rest, Some(id)).await;
    assert!(matches!(other, Err(connect::ConnectError::OtherAccount(..))), "{other:?}");
    assert_eq!(t.source(id).await.status.as_str(), "token_refresh_failed");

    t.fakes.behave();
    t.fakes.as_account(fakes::HUBSPOT, fakes::HUBSPOT.default_account());
    let again = t.connect_over(HUBSPOT, domain::Transport::Rest, Some(id)).await.expect("reconnected");
    assert_eq!(again, id);
    run_for_hours(&t, 1).await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!((t.source(id).await.status.as_str(), job.status.as_str()), ("active", "completed"), "{job:?}");
    assert!(whole(&t, id).await, "something is missing after reconnecting");
    let lists = t.fakes.ledger().iter().filter(|seen| seen.path.ends_with("/contacts") && seen.method == "GET").count();
    assert!(lists <= 10, "it began from the start: {lists} pages");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lost_its_job_says_nothing_about_it() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    t.fakes.set_latency(LISTS, Duration::from_millis(700));
    t.fakes.next(LISTS, Manner::Status(403));
    let queue = store::queue::Queue::new("ingestion_queue").expect("a queue");
    let lost = async {
        t.fakes.wait_for_requests(LISTS, 1).await;
        let later = Some(t.world.env.clock.now() + TimeDelta::minutes(6));
        queue.claim(&mut *t.world.conn().await, later, 1, 300, "another").await.expect("a claim")
    };
    let (_, claimed) = tokio::join!(t.run(), lost);
    assert_eq!(claimed.len(), 1, "nobody else got it");
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.error_count, job.error_message), ("running", 0, None));
    assert_eq!(t.source(id).await.status.as_str(), "active", "a late refusal counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_paused_source_pauses_its_job() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    t.fakes.set_latency(LISTS, Duration::from_millis(300));
    let moved = async {
        t.fakes.wait_for_requests(LISTS, 1).await;
        let sql = "update sync_jobs set status = 'pending'";
        sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("moved");
    };
    tokio::join!(t.run(), moved);
    assert_eq!(t.jobs(id).await[0].status.as_str(), "pending", "paused though its source is not");
    t.fakes.behave();
    run_for_hours(&t, 1).await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");
    assert!(whole(&t, id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn resumed_while_a_worker_pauses_it_a_job_goes_on() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    assert!(jobs::pause_source(env, tenant, id).await.expect("paused"));
    let mut tx = env.db.begin().await.expect("a transaction");
    store::sources::set_status(&mut tx, None, tenant, id, domain::SourceStatus::Active, None).await.expect("resumed");
    let resumed = async {
        let is_waiting = t.is_waited().await;
        tx.commit().await.expect("a commit");
        is_waiting
    };
    let (_, is_waiting) = tokio::join!(t.run(), resumed);
    assert!(is_waiting, "the worker did not look whether the source is paused");
    assert_eq!(t.jobs(id).await[0].status.as_str(), "pending");
    run_for_hours(&t, 1).await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");

    // What was left behind all the same goes on with the next sync.
    t.sync(id).await;
    let sql = "with gone as (delete from pgmq.q_ingestion_queue) update sync_jobs set status = 'paused' where status = 'pending'";
    sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("left behind");
    t.sync(id).await;
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{:?}", t.jobs(id).await[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_live_job_goes_on_whatever_newer_one_failed() {
    let t = Sources::new().await;
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let caller = Caller::local("test", tenant, true);
    t.fakes.always(LISTS, Some(Manner::Status(403)));
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    let older = domain::JobId(t.jobs(id).await[0].id);
    let newer = t.sync(id).await;
    t.run().await;
    assert!(t.jobs(id).await.iter().all(|job| job.status == domain::JobStatus::Failed), "{:?}", t.jobs(id).await);
    t.fakes.behave();
    assert!(jobs::retry(env, &caller, older).await.expect("an answer"));

    // A person replays the other's dead letter: it is ended again, as one is under way.
    let mut tx = env.db.begin().await.expect("a transaction");
    let item = store::jobs::item(&mut tx, tenant, newer).await.expect("an answer").expect("a dead letter");
    let queue = store::queue::Queue::new("ingestion_queue").expect("a queue");
    let replayed = queue.act(&mut tx, env.clock.sql(), &caller, item, domain::item::Action::Retry).await;
    assert!(replayed.expect("replayed"));
    tx.commit().await.expect("a commit");

    assert!(jobs::pause_source(env, tenant, id).await.expect("paused"));
    t.run().await;
    assert!(jobs::resume_source(env, tenant, id).await.expect("resumed"));
    t.run().await;
    let ended: Vec<&str> = t.jobs(id).await.into_iter().map(|job| job.status.as_str()).collect();
    assert_eq!(ended, ["failed", "completed"], "the newest first");
    assert!(whole(&t, id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_pauses_resumes_cancels_and_disconnects() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let caller = Caller::local("test", tenant, true);
    assert!(jobs::pause_source(env, tenant, id).await.expect("paused"));
    t.run().await;
    assert_eq!((t.jobs(id).await[0].status.as_str(), t.documents(id).await.len()), ("paused", 0));
    assert!(jobs::sync(env, tenant, id, None, "test").await.is_err(), "a paused source was synced");
    assert!(jobs::resume_source(env, tenant, id).await.expect("resumed"));
    t.run().await;
    assert_eq!((t.jobs(id).await[0].status.as_str(), t.jobs(id).await.len()), ("completed", 1));

    let job_id = t.sync(id).await;
    assert_eq!(t.sync(id).await, job_id, "two syncs of one source");
    assert!(jobs::cancel(env, &caller, job_id).await.expect("cancelled"));
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "cancelled");
    assert!(!jobs::cancel(env, &caller, job_id).await.expect("an answer"), "cancelled twice");

    assert!(connect::disconnect(env, tenant, id).await.expect("disconnected"));
    assert_eq!(t.count("select count(*) from tributary.vault where source_id is not null").await, 0, "tokens stayed");
    assert!(!t.documents(id).await.is_empty(), "disconnecting forgot");
    let before = t.documents(id).await;
    assert_eq!(t.connect(HUBSPOT).await, id, "the same account became a second source");
    assert!(t.source(id).await.next_sync_at.is_some());
    t.run().await;
    assert_eq!((t.jobs(id).await[0].status.as_str(), t.documents(id).await), ("completed", before));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_and_disconnected_while_a_page_is_written_neither_is_in_the_others_way() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let caller = Caller::local("test", tenant, true);
    for is_cancelled in [true, false] {
        let job_id = t.sync(id).await;
        // A page's commit: the message, then the source or the job.
        let mut page = env.db.begin().await.expect("a transaction");
        let lock = "select msg_id from pgmq.q_ingestion_queue for update";
        sqlx::query(lock).execute(&mut *page).await.expect("its message");
        let write = async {
            assert!(t.is_waited().await, "nobody waits");
            for sql in
                ["update connected_sources set last_successful_sync_at = now()", "update sync_jobs set note = 'a page'"]
            {
                sqlx::query(sql).execute(&mut *page).await.expect("a page");
            }
            page.commit().await.expect("a commit");
        };
        let stop = async {
            if is_cancelled {
                jobs::cancel(env, &caller, job_id).await
            } else {
                connect::disconnect(env, tenant, id).await
            }
        };
        let (_, stopped) = tokio::join!(write, stop);
        assert!(stopped.expect("stopped"));
        assert_eq!(t.jobs(id).await[0].status.as_str(), "cancelled");
    }
}
