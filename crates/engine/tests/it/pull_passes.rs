//! Passes that start over, and records that cannot be read: nothing is lost, and nothing is taken away that is still there.

use std::time::Duration;

use chrono::TimeDelta;
use domain::JobKind;
use engine::pull::jobs;
use fakes::Manner;
use serde_json::json;
use testkit::Sources;
use testkit::sources::{DRIVE, HUBSPOT, QUICKBOOKS};

use crate::pull_faults::whole;

/// F28.
#[tokio::test(flavor = "multi_thread")]
async fn a_place_the_provider_forgot_leads_to_a_full_pass_by_itself() {
    let t = Sources::new().await;
    let drive = t.connect(DRIVE).await;
    t.run().await;
    sqlx::query("update connected_sources set cursors = jsonb_build_object('page_token', '999999') where id = $1")
        .bind(drive.0)
        .execute(&mut *t.world.conn().await)
        .await
        .expect("a cursor nobody knows");
    t.sync(drive).await;
    t.run().await;
    let feed: Vec<_> = t.fakes.ledger().into_iter().filter(|asked| asked.path == "/drive/v3/changes").collect();
    assert!(feed.len() == 1 && feed[0].status.is_some_and(|status| status >= 400), "nobody was asked: {feed:?}");
    let job = t.jobs(drive).await.remove(0);
    assert_eq!((job.status.as_str(), job.kind.as_str()), ("completed", "full"), "{job:?}");
    assert!(job.note.is_some(), "nobody was told: {job:?}");
    let quickbooks = t.connect(QUICKBOOKS).await;
    t.run().await;
    sqlx::query("update connected_sources set cursors = jsonb_set(cursors, '{changed_since}', '\"2026-01-01T00:00:00Z\"') where id = $1")
        .bind(quickbooks.0)
        .execute(&mut *t.world.conn().await)
        .await
        .expect("a cursor that is too old");
    t.sync(quickbooks).await;
    t.run().await;
    let job = t.jobs(quickbooks).await.remove(0);
    assert_eq!((job.status.as_str(), job.kind.as_str()), ("completed", "full"), "{job:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_while_a_pass_starts_over_is_taken_away() {
    let contacts = "/hubspot/crm/objects/2026-03/contacts";
    let t = Sources::new().await;
    t.fakes.hubspot().fill_contacts(150);
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    t.sync_as(id, Some(JobKind::Full)).await;
    // The cursor, the first page, and a second one whose place is lost.
    t.fakes.next(contacts, Manner::LostToken);
    t.fakes.set_latency(contacts, Duration::from_millis(500));
    let (asked, met) = (t.fakes.requests(contacts), t.fakes.hubspot().ids("contacts").remove(0));
    let gone = async {
        t.fakes.wait_for_requests(contacts, asked + 3).await;
        t.fakes.hubspot().purge("contacts", &met);
    };
    tokio::join!(t.run(), gone);
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.n_deleted), ("completed", 1), "{job:?}");
    assert!(!t.documents(id).await.contains(&format!("contact:{met}")), "what was met before it went is still there");
    assert!(whole(&t, id).await);
}

/// F19.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_holds_up_nobody_and_can_be_tried_again_or_skipped() {
    let t = Sources::new().await;
    let file = t.fakes.drive().put_doc("Too large", "x");
    t.fakes.always(&format!("/drive/v3/files/{file}/export"), Some(Manner::Status(403)));
    let id = t.connect(DRIVE).await;
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.items_failed), ("completed", 1), "{job:?}");
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let failures = store::failures::list(&mut *t.world.conn().await, tenant, id, 10).await.expect("failures");
    assert_eq!((failures.len(), failures[0].external_id.as_str()), (1, format!("file:{file}").as_str()));
    assert_eq!(t.source(id).await.n_failures, 1);

    t.fakes.behave();
    // Also while the provider refuses something else.
    let sql = "update connected_sources set status = 'provider_error' where provider = 'google_drive'";
    sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("a refusal");
    jobs::retry_failures(env, tenant, id, &[format!("file:{file}")], "test").await.expect("a job");
    t.run().await;
    assert_eq!(t.source(id).await.n_failures, 0, "it was read and still counts as failed");
    assert!(t.documents(id).await.contains(&format!("file:{file}")));

    // One that was skipped and can be read after all is no longer left out.
    let (file, path) = (t.fakes.drive().put_doc("Too large as well", "y"), "/drive/v3/files");
    t.fakes.always(&format!("{path}/{file}/export"), Some(Manner::Status(403)));
    t.sync_as(id, Some(JobKind::Full)).await;
    t.run().await;
    let (mut conn, name) = (t.world.conn().await, format!("file:{file}"));
    assert!(store::failures::skip(&mut conn, None, tenant, id, &name).await.expect("skipped"));
    t.fakes.behave();
    t.sync_as(id, Some(JobKind::Full)).await;
    t.run().await;
    assert!(t.documents(id).await.contains(&name));
    assert!(
        store::failures::list(&mut conn, tenant, id, 10).await.expect("failures").is_empty(),
        "it is still left out"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_there_and_cannot_be_read_is_not_taken_away() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    let crm = t.fakes.hubspot();
    let contact = crm.ids("contacts").remove(0);
    let name = format!("contact:{contact}");
    crm.patch("contacts", &contact, json!({ "jobtitle": "x".repeat(1_100_000) }));
    t.sync_as(id, Some(JobKind::Full)).await;
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.n_deleted, job.items_failed), ("completed", 0, 1), "{job:?}");
    assert!(t.documents(id).await.contains(&name), "it was taken for gone");
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let failures = store::failures::list(&mut *t.world.conn().await, tenant, id, 10).await.expect("failures");
    assert_eq!(failures.iter().map(|failure| failure.external_id.as_str()).collect::<Vec<_>>(), [&name]);

    crm.patch("contacts", &contact, json!({ "jobtitle": "Owner" }));
    jobs::retry_failures(env, tenant, id, &[name], "test").await.expect("a job");
    t.run().await;
    assert_eq!(t.source(id).await.n_failures, 0);
    let nameless = ["contact:?0a1b2c3d".to_owned()];
    assert!(jobs::retry_failures(env, tenant, id, &nameless, "test").await.is_err(), "it can be asked for by nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_pass_met_goes_with_the_next_one_and_the_job_after_its_time() {
    let t = Sources::new().await;
    t.fakes.always("/hubspot/crm/objects/2026-03/companies", Some(Manner::Status(403)));
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "failed");
    let seen = "select count(*) from tributary.sync_seen";
    assert!(t.count(seen).await > 0, "nothing was met");
    t.fakes.behave();
    t.sync(id).await;
    t.run().await;
    assert_eq!((t.jobs(id).await[0].status.as_str(), t.count(seen).await), ("completed", 0));
    let later = Some(t.world.env.clock.now() + TimeDelta::days(91));
    store::retention::enforce(&mut *t.world.conn().await, later, &[], |_, _| {}).await;
    let left: Vec<&str> = t.jobs(id).await.into_iter().map(|job| job.status.as_str()).collect();
    assert_eq!(left, ["completed"], "a failed job is kept for ever");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_files_that_are_tried_again_come_a_few_at_a_time() {
    let t = Sources::empty().await;
    let drive = t.fakes.drive();
    let files: Vec<String> = (0..10).map(|n| drive.put_doc(&format!("Note {n}"), "before")).collect();
    let id = t.connect(DRIVE).await;
    t.run().await;
    let cursor = t.source(id).await.cursors;
    files.iter().for_each(|file| drive.set_text(file, "after"));
    let names: Vec<String> = files.iter().map(|file| format!("file:{file}")).collect();
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    jobs::retry_failures(env, tenant, id, &names, "test").await.expect("a job");
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.n_updated), ("completed", 10), "{job:?}");
    assert_eq!(job.checkpoint_data["items"].as_array().map(Vec::len), Some(2), "all came at once: {job:?}");
    assert_eq!(t.source(id).await.cursors, cursor, "a few files moved the place of all");
}
