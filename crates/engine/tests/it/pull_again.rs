//! Syncs that are asked for while another one of the same source is under way.

use domain::{ItemState, JobKind};
use engine::failures::{self, Again};
use engine::pull::{connect, jobs};
use serde_json::json;
use store::queue::{Queue, Settlement};
use testkit::Sources;
use testkit::sources::HUBSPOT;

/// F37.
#[tokio::test(flavor = "multi_thread")]
async fn a_sync_that_is_asked_for_while_one_runs_follows_it_however_that_one_ends() {
    let t = Sources::new().await;
    let (env, tenant_id) = (&t.world.env, t.world.tenant_id);
    let caller = t.world.operator().await;
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    for end in ["completed", "cancelled", "failed", "disconnected"] {
        let before = t.jobs(id).await.len();
        let running = t.sync(id).await;
        assert_eq!(t.sync(id).await, running, "it has not begun, and does all that is asked");
        sqlx::query("update sync_jobs set started_at = now() where status = 'pending'")
            .execute(&mut *t.world.conn().await)
            .await
            .expect("begun");
        for kind in [None, Some(JobKind::Full), None] {
            let asked = jobs::sync(env, tenant_id, id, kind, "person").await.expect("an answer");
            assert_eq!(asked, Some(jobs::Asked::Running(running)));
        }
        let ids = vec!["contact:1".to_owned()];
        jobs::retry_failures(env, tenant_id, id, &ids, "person").await.expect("an answer");
        assert_eq!(t.jobs(id).await.len(), before + 1, "it does not run beside the first");
        match end {
            "cancelled" => assert!(jobs::cancel(env, &caller, running).await.expect("cancelled")),
            "failed" => {
                let (queue, mut conn) = (Queue::new("ingestion_queue").expect("a queue"), t.world.conn().await);
                let claimed = queue.claim(&mut conn, env.clock.sql(), 1, 60, "me").await.expect("a claim");
                let given_up = Settlement::Bury(claimed[0].receipt(), ItemState::Dead, "told to fail");
                assert_eq!(queue.settle(&mut conn, env.clock.sql(), &given_up).await.expect("buried"), 1);
            }
            "disconnected" => assert!(connect::disconnect(env, tenant_id, id).await.expect("disconnected")),
            _ => {}
        }
        t.run().await;
        let all = t.jobs(id).await;
        let ended: Vec<_> = all[..2].iter().map(|job| (job.kind.as_str(), job.status.as_str())).collect();
        match end {
            "disconnected" => assert_eq!(ended, [("full", "cancelled"), ("delta", "cancelled")]),
            end => assert_eq!(ended, [("full", "completed"), ("delta", end)]),
        }
        assert_eq!((all.len(), all[0].requested_by.as_str()), (before + 2, "person"), "one of them is enough: {all:?}");
    }
    assert_eq!(t.count("select count(*) from pgmq.q_ingestion_queue").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_to_be_read_again_follow_the_sync_that_was_asked_for() {
    let t = Sources::new().await;
    let (env, tenant_id) = (&t.world.env, t.world.tenant_id);
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    t.sync(id).await;
    sqlx::query("update sync_jobs set started_at = now() where status = 'pending'")
        .execute(&mut *t.world.conn().await)
        .await
        .expect("begun");
    let ids = vec![t.documents(id).await.remove(0)];
    jobs::retry_failures(env, tenant_id, id, &ids, "person").await.expect("an answer");
    t.sync(id).await;
    t.run().await;
    let all = t.jobs(id).await;
    let items: Vec<bool> = all.iter().map(|job| job.checkpoint_data["items"] == json!(ids)).collect();
    assert_eq!(items, [true, false, false, false], "the whole first, then the records: {all:?}");
    assert!(all.iter().all(|job| job.status.as_str() == "completed"), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_that_is_asked_for_while_a_retried_job_runs_follows_it_too() {
    let t = Sources::new().await;
    let (env, tenant_id) = (&t.world.env, t.world.tenant_id);
    let caller = t.world.operator().await;
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    let job = t.sync(id).await;
    for round in 0..2 {
        if round == 1 {
            assert!(jobs::retry(env, &caller, job).await.expect("retried"));
        }
        let mut conn = t.world.conn().await;
        sqlx::query("update sync_jobs set started_at = now() where status = 'pending'")
            .execute(&mut *conn)
            .await
            .expect("begun");
        let before = t.jobs(id).await.len();
        let asked = jobs::sync(env, tenant_id, id, Some(JobKind::Full), "person").await.expect("an answer");
        assert_eq!(asked, Some(jobs::Asked::Running(job)));
        assert!(jobs::cancel(env, &caller, job).await.expect("cancelled"));
        t.run().await;
        let all = t.jobs(id).await;
        assert_eq!(all.len(), before + 1, "round {round}: {all:?}");
        assert_eq!((all[0].kind.as_str(), all[0].status.as_str()), ("full", "completed"), "round {round}");
    }
}

/// F37.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_asks_at_once_one_starts_the_sync_and_the_other_is_told_of_it() {
    let t = Sources::new().await;
    let (env, tenant_id) = (&t.world.env, t.world.tenant_id);
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    for _ in 0..20 {
        let ask = || jobs::sync(env, tenant_id, id, None, "person");
        let (one, two, three) = tokio::join!(ask(), ask(), ask());
        let mut asked = [one, two, three].map(|asked| asked.expect("no error").expect("a source"));
        asked.sort_by_key(|asked| matches!(asked, jobs::Asked::Running(_)));
        let jobs::Asked::Started(job) = asked[0] else { panic!("nobody started it: {asked:?}") };
        assert_eq!(asked[1..], [jobs::Asked::Running(job), jobs::Asked::Running(job)]);
        t.run().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_too_many_for_one_job_are_told_and_not_dropped() {
    let t = Sources::new().await;
    let (env, caller) = (&t.world.env, t.world.operator().await);
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    let failed = "insert into sync_failures (tenant_id, source_id, external_id, reason, failed_at)
                  select tenant_id, id, 'contact:' || n, 'it is not an object', now() from connected_sources, generate_series(1, 700) n
                  where id = $1";
    sqlx::query(failed).bind(id.0).execute(&mut *t.world.conn().await).await.expect("failures");
    let Again::Started { job_id, n: 500, left_out: 200 } =
        failures::retry_all(env, &caller, id).await.expect("an answer")
    else {
        panic!("one job reads 500 of 700")
    };
    let begun = "update sync_jobs set started_at = now() where status = 'pending'";
    sqlx::query(begun).execute(&mut *t.world.conn().await).await.expect("begun");
    let again = failures::retry_all(env, &caller, id).await.expect("an answer");
    assert_eq!(again, Again::Running { job_id, left_out: 200 });
}
