//! Every notice leads to a sync: one sync for any number of notices, another one for what was heard meanwhile, and none lost by a failure.

use std::sync::Arc;
use std::time::Duration;

use connectors::pull::PullError;
use domain::item::Action;
use domain::{Caller, JobId, JobKind, JobStatus, Secret, SourceStatus, Transport};
use engine::items;
use engine::pull::{connect, jobs};
use futures_util::future::join_all;
use serde_json::json;
use testkit::wait_until;
use tokio::sync::Semaphore;

use super::mailbox::Post;
use super::provider::PIGEON;

const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_notices_are_one_sync_and_what_is_heard_meanwhile_is_one_more() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    let before = p.pushed(id).await.len();
    p.loft().write("the first letter");
    let notices = json!([p.good("changed")]);
    let told = async |n: usize| {
        let answers = join_all((0..n).map(|_| p.post("pigeon", &notices))).await;
        assert!(answers.iter().all(Result::is_ok));
    };
    told(1_000).await;
    let row = p.pending(id).await.expect("a row");
    assert_eq!((row.status.as_str(), row.attempts), ("pending", 0));
    assert_eq!(p.t.count("select count(*) from pgmq.q_ingestion_queue").await, 1, "one message");

    let gate = Arc::new(Semaphore::new(0));
    p.loft().gate = gate.clone();
    let deltas = p.loft().n_deltas;
    let meanwhile = async {
        assert!(wait_until(SOON, async || p.loft().n_deltas > deltas).await, "no sync begins");
        let row = p.pending(id).await.expect("a row");
        assert!(row.status == "processing" && row.claimed_at.is_some(), "{row:?}");
        p.loft().write("a letter of the meantime");
        told(1_000).await;
        let moved = p.pending(id).await.expect("a row");
        assert_eq!(moved.claimed_at, row.claimed_at, "a notice took a claim away");
        assert!(moved.requested_at > moved.claimed_at.expect("a claim"), "{moved:?}");
        gate.add_permits(1_000);
    };
    tokio::join!(p.t.run(), meanwhile);
    assert_eq!(p.t.documents(id).await, ["message:0"], "the letter of the meantime came too late for this sync");
    p.t.run().await;
    assert_eq!(p.pushed(id).await[0].status, JobStatus::Pending, "a mailbox rests between two syncs");
    p.advance(3);
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0", "message:1"]);
    let pushed = p.pushed(id).await;
    assert_eq!(pushed.len() - before, 2, "{pushed:?}");
    assert!(pushed.iter().all(|job| job.status == JobStatus::Completed && job.kind == JobKind::Push), "{pushed:?}");
    assert!(p.pending(id).await.is_none());
    assert!(p.t.source(id).await.last_notice_at.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_that_meets_another_sync_is_read_after_it() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    let gate = Arc::new(Semaphore::new(0));
    p.loft().gate = gate.clone();
    let deltas = p.loft().n_deltas;
    p.t.sync(id).await;
    let meanwhile = async {
        assert!(wait_until(SOON, async || p.loft().n_deltas > deltas).await, "no sync begins");
        p.loft().write("a letter of the meantime");
        p.tell("changed").await;
        gate.add_permits(1_000);
    };
    tokio::join!(p.t.run(), meanwhile);
    p.advance(3);
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0"]);
    assert!(p.pending(id).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_whose_subscription_is_lost_during_a_sync_is_asked_again_soon() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    let gate = Arc::new(Semaphore::new(0));
    p.loft().gate = gate.clone();
    let deltas = p.loft().n_deltas;
    p.t.sync(id).await;
    let meanwhile = async {
        assert!(wait_until(SOON, async || p.loft().n_deltas > deltas).await, "no sync begins");
        p.tell("removed").await;
        gate.add_permits(1_000);
    };
    tokio::join!(p.t.run(), meanwhile);
    let source = p.t.source(id).await;
    assert_eq!(source.status, SourceStatus::SubscriptionExpired);
    let wait = source.next_sync_at.map(|next| (next - p.t.world.env.clock.now()).num_seconds());
    assert!(wait.is_some_and(|secs| secs <= 61), "the sync ended as if its provider still told of changes: {wait:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_mailboxes_told_of_at_once_are_each_read_once() {
    let p = Post::new().await;
    let (env, tenant) = (&p.t.world.env, p.t.world.tenant_id);
    let n_mailboxes: usize = if testkit::is_slow() { 1_000 } else { 130 };
    let mut ids = Vec::new();
    for n in 0..n_mailboxes {
        p.loft().account = format!("ann{n}@acme.example");
        let key = Secret::new("ring");
        let id = connect::with_key(env, tenant, PIGEON, &key, None, Transport::Rest).await;
        ids.push(id.expect("a source"));
    }
    p.t.run().await;
    p.keep().await;
    p.advance(10);
    p.t.run().await;
    p.advance(10);
    let before = p.t.count("select count(*) from sync_jobs").await;
    let made = p.loft().made.clone();
    assert_eq!(made.len(), ids.len());
    let all: Vec<_> = made.iter().map(|made| json!({ "of": made.id, "state": made.client_state })).collect();
    p.post("pigeon", &json!(all)).await.expect("taken"); // a flood: the answer comes before the jobs
    p.start().await;
    p.t.run().await;
    let n_syncs = p.t.count("select count(*) from sync_jobs").await - before;
    assert_eq!(usize::try_from(n_syncs), Ok(n_mailboxes));
    assert_eq!(p.t.count("select count(*) from pending_syncs").await, 0);
}

/// I5.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_started_is_started_by_the_next_look() {
    let p = Post::with(&[], |config| {
        config.mailbox_hook_url = Some("https://hear.example.com".into());
        config.mailbox_wake = false;
    })
    .await;
    let id = p.connect_quietly().await;
    p.loft().write("a letter");
    p.tell("changed").await;
    p.t.run().await;
    assert!(p.t.documents(id).await.is_empty(), "a notice does not wake here");
    p.start().await;
    p.t.run().await;
    assert!(p.t.documents(id).await.is_empty(), "the interval alone paces it");
    p.advance(6);
    p.start().await;
    p.start().await; // one is enough
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0"]);
    assert!(p.pending(id).await.is_none());

    // Another program writes a row.
    p.loft().write("another letter");
    p.sql("insert into pending_syncs (source_id, tenant_id) select id, tenant_id from connected_sources where provider = 'pigeon'").await;
    p.start().await;
    p.t.run().await;
    assert_eq!(p.t.documents(id).await.len(), 2);
}

/// F17.
#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_keeps_failing_says_so_and_goes_on_slowly() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    p.loft().write("a letter");
    p.loft().is_down = true;
    p.tell("changed").await;
    p.t.run().await;
    let row = p.pending(id).await.expect("a row");
    assert_eq!((row.status.as_str(), row.attempts), ("pending", 1));
    assert_eq!(row.last_error.as_deref(), Some("Pigeon does not answer"));
    assert!(row.not_before.is_some_and(|at| at > p.t.world.env.clock.now()), "{row:?}");
    assert_eq!(p.status(id).await, SourceStatus::Active, "one failure is none");
    for _ in 0..10 {
        p.advance(1_800);
        p.t.run().await;
    }
    let source = p.t.source(id).await;
    assert_eq!(
        (source.status, source.status_message.as_deref()),
        (SourceStatus::ProviderError, Some("failing: provider"))
    );
    let dead = "select count(*) from pgmq.a_ingestion_queue where coalesce(headers ->> 'state', 'dead') = 'dead'";
    assert_eq!(p.t.count(dead).await, 0, "it was given up");
    assert!(p.pending(id).await.expect("a row").attempts >= 5);

    p.loft().is_down = false;
    for _ in 0..4 {
        p.advance(3_600);
        p.t.run().await;
    }
    assert_eq!((p.status(id).await, p.t.documents(id).await), (SourceStatus::Active, vec!["message:0".to_owned()]));
    assert!(p.pending(id).await.is_none());
}

/// F17.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_is_no_attempt_and_what_was_heard_is_kept() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    p.loft().write("a letter");
    let wait = PullError::RateLimited { who: "Pigeon", retry_after: Duration::from_secs(40) };
    p.loft().troubles.push(wait);
    p.tell("changed").await;
    p.t.run().await;
    let row = p.pending(id).await.expect("a row");
    assert_eq!((row.status.as_str(), row.last_error.as_deref()), ("pending", None));
    assert_eq!(p.pushed(id).await[0].error_count, 0);
    p.advance(60);
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0"]);
    assert!(p.pending(id).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_place_is_found_again_by_the_same_sync() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    p.loft().write("a letter");
    p.loft().troubles.push(PullError::CursorLost("Pigeon no longer knows our place"));
    p.tell("changed").await;
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0"]);
    assert!(p.pending(id).await.is_none());
    assert_eq!(p.pushed(id).await[0].kind, JobKind::Full, "it became a full pass");
}

/// F16.
#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_lost_in_every_try_is_not_asked_for_again() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    p.loft().write("a letter");
    p.loft().troubles.push(PullError::CursorLost("Pigeon no longer knows our place"));
    p.loft().n_losses = 3; // one for each full pass that begins at once
    p.tell("changed").await;
    p.t.run().await;
    let source = p.t.source(id).await;
    assert_eq!(
        (source.status, source.status_message.as_deref()),
        (SourceStatus::ProviderError, Some("failing: cursor"))
    );
    let job = p.pushed(id).await.remove(0);
    assert_eq!((job.status, job.error_count, job.kind), (JobStatus::Pending, 1, JobKind::Full), "{job:?}");
    p.advance(60);
    p.t.run().await;
    assert_eq!(p.pushed(id).await[0].error_count, 1, "it is asked again and again");
    p.advance(300);
    p.t.run().await;
    assert_eq!((p.status(id).await, p.pushed(id).await[0].status), (SourceStatus::Active, JobStatus::Completed));
    assert_eq!(p.t.documents(id).await, ["message:0"]);
    assert!(p.pending(id).await.is_none());
}

/// F17.
#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_waits_after_failures_is_read_at_once_when_a_person_retries_it() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    p.loft().write("a letter");
    p.loft().is_down = true;
    p.tell("changed").await;
    for _ in 0..40 {
        p.t.run().await;
        if p.pushed(id).await[0].error_count == 6 {
            break;
        }
        p.advance(120);
    }
    p.loft().is_down = false;
    p.advance(310); // its provider is left alone for five minutes at most, the mailbox now for ten
    p.t.run().await;
    let job = p.pushed(id).await.remove(0);
    assert_eq!((job.status, job.error_count), (JobStatus::Pending, 6), "it does not wait: {job:?}");

    let (env, tenant) = (&p.t.world.env, p.t.world.tenant_id);
    let item = store::jobs::item(&mut *p.t.world.conn().await, tenant, JobId(job.id)).await.expect("an answer");
    let lane = engine::lanes::ALL.iter().find(|lane| lane.name == "ingestion_queue").expect("a lane");
    let caller = Caller::local("test", tenant, true);
    items::act(env, &caller, lane, item.expect("a message"), Action::Retry).await.expect("a retry");
    p.t.run().await;
    assert_eq!((p.status(id).await, p.t.documents(id).await), (SourceStatus::Active, vec!["message:0".to_owned()]));
}

/// I5.
#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_is_connected_anew_is_read_at_once() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    p.loft().write("a letter");
    p.loft().troubles.push(PullError::Unauthorized { who: "Pigeon" });
    p.tell("changed").await;
    p.t.run().await;
    assert_eq!(
        (p.status(id).await, p.pushed(id).await[0].status),
        (SourceStatus::TokenRefreshFailed, JobStatus::Failed)
    );
    // The wait is by the database's clock, an hour behind the test's.
    p.sql("update pending_syncs set not_before = not_before + interval '1 hour'").await;
    let row = p.pending(id).await.expect("what was heard is kept");
    assert!(row.not_before.is_some_and(|at| at > p.t.world.env.clock.now()), "{row:?}");

    let (env, tenant) = (&p.t.world.env, p.t.world.tenant_id);
    let key = Secret::new("ring-2");
    connect::with_key(env, tenant, PIGEON, &key, Some(id), Transport::Rest).await.expect("connected anew");
    p.t.run().await;
    assert_eq!((p.status(id).await, p.t.documents(id).await), (SourceStatus::Active, vec!["message:0".to_owned()]));
    assert!(p.pending(id).await.is_none());
}

/// F17.
#[tokio::test(flavor = "multi_thread")]
async fn many_mailboxes_that_fail_in_one_moment_wait_no_longer_than_one() {
    let p = Post::new().await;
    let mut ids = vec![p.connect(PIGEON).await];
    for n in 0..9 {
        p.loft().account = format!("ann{n}@acme.example");
        ids.push(p.connect_at(PIGEON).await);
    }
    for id in &ids {
        p.t.sync(*id).await;
    }
    p.loft().write("a letter");
    let gate = Arc::new(Semaphore::new(0));
    p.loft().gate = gate.clone();
    let deltas = p.loft().n_deltas;
    let meanwhile = async {
        assert!(wait_until(SOON, async || p.loft().n_deltas == deltas + ids.len()).await, "they are not all asked for");
        p.loft().is_down = true;
        gate.add_permits(1_000);
    };
    tokio::join!(join_all((0..ids.len()).map(|_| p.t.run())), meanwhile);
    p.loft().is_down = false;
    p.advance(61);
    p.t.run().await;
    for id in ids {
        assert_eq!(p.t.documents(id).await, ["message:0"], "{:?}", p.t.jobs(id).await[0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_mailbox_hears_nothing_and_reads_all_of_it_when_it_is_resumed() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    let (env, tenant) = (&p.t.world.env, p.t.world.tenant_id);
    assert!(jobs::pause_source(env, tenant, id).await.expect("paused"));
    p.loft().write("a letter");
    p.tell("changed").await;
    assert!(p.pending(id).await.is_none());
    p.start().await;
    p.t.run().await;
    assert!(p.t.documents(id).await.is_empty());
    assert!(jobs::resume_source(env, tenant, id).await.expect("resumed"));
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_sync_is_not_begun_again_until_something_is_heard() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    p.loft().write("a letter");
    p.tell("changed").await;
    let caller = Caller::local("test", p.t.world.tenant_id, true);
    let job = JobId(p.pushed(id).await[0].id);
    assert!(jobs::cancel(&p.t.world.env, &caller, job).await.expect("cancelled"));
    assert!(p.pending(id).await.is_none());
    p.start().await;
    p.t.run().await;
    assert!(p.t.documents(id).await.is_empty());
    p.advance(10);
    p.tell("changed").await;
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_has_been_silent_is_looked_at_all_the_same() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    p.loft().write("a letter that nobody told of");
    p.advance(1_800);
    assert_eq!(jobs::sync_due(&p.t.world.env).await.expect("an answer"), 0, "it is told of");
    p.advance(1_900);
    assert_eq!(jobs::sync_due(&p.t.world.env).await.expect("an answer"), 1);
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0"]);
    // What a notice told of is not in the list yet: it is looked at again soon.
    p.tell("changed").await;
    p.advance(3);
    p.t.run().await;
    p.loft().write("a letter that came late into the list");
    p.advance(25);
    assert_eq!(jobs::sync_due(&p.t.world.env).await.expect("an answer"), 1);
    p.t.run().await;
    assert_eq!(p.t.documents(id).await.len(), 2);
}
