//! Drive's files of other kinds than Google's own: fetched once, read as every file is, and gone when Drive has them no more.

use std::time::Duration;

use chrono::TimeDelta;
use domain::{Clock, JobKind, SourceId};
use engine::pull::jobs;
use fakes::{Fakes, Manner, RetryAfter};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use store::crash::Point;
use testkit::process::Worker;
use testkit::sources::{DRIVE, settings};
use testkit::{Sources, cluster, wait_until};

use crate::programs;

const PDF: &str = "application/pdf";
const ASKED: &str = "select count(*) from pgmq.q_document_queue";

/// The requests for the bytes of a file.
fn fetched(t: &Sources, file: &str) -> u64 {
    t.fakes.requests(&format!("/drive/v3/files/{file}"))
}

fn names(files: &[&String]) -> Vec<String> {
    let mut names: Vec<String> = files.iter().map(|file| format!("file:{file}")).collect();
    names.sort();
    names
}

/// The status, the title and the metadata of a file's document, and the name of its bytes.
async fn told(t: &Sources, file: &str) -> (String, String, Value, String) {
    sqlx::query_as("select status, title, source_metadata, blob_key from source_documents where external_id = $1")
        .bind(format!("file:{file}"))
        .fetch_one(&mut *t.world.conn().await)
        .await
        .expect("a document")
}

async fn sync(t: &Sources, id: SourceId, kind: Option<JobKind>) {
    t.sync_as(id, kind).await;
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!(job.status.as_str(), "completed", "{job:?}");
}

async fn reasons(t: &Sources, id: SourceId) -> Vec<(String, String)> {
    let failures = store::failures::list(&mut *t.world.conn().await, t.world.tenant_id, id, 10).await;
    let mut reasons: Vec<_> =
        failures.expect("failures").into_iter().map(|failure| (failure.external_id, failure.reason)).collect();
    reasons.sort();
    reasons
}

/// I2.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_fetched_once_whatever_its_name_and_again_when_its_bytes_change() {
    let t = Sources::empty().await;
    let drive = t.fakes.drive();
    let lease = drive.put_bytes("Lease.pdf", PDF, b"%PDF one");
    let copy = drive.put_bytes("Copy of lease.pdf", PDF, b"%PDF one");
    let sheet = drive.put_doc("Plan", "We begin in May.");
    drive.put_bytes("film.mp4", "video/mp4", b"film");
    let id = t.connect(DRIVE).await;
    t.run().await;
    assert_eq!(t.documents(id).await, names(&[&lease, &copy, &sheet]));
    assert_eq!(fetched(&t, &lease) + fetched(&t, &copy), 1, "the same bytes were fetched twice");
    assert_eq!(t.count(ASKED).await, 2);
    let (status, title, metadata, blob) = told(&t, &lease).await;
    assert_eq!((status.as_str(), title.as_str()), ("pending", "Lease.pdf"));
    assert_eq!((&metadata["file_name"], &metadata["media_type"]), (&json!("Lease.pdf"), &json!(PDF)));
    let kept = t.world.env.blobs.get(t.world.tenant_id, &blob.parse().expect("a key")).await.expect("an answer");
    assert_eq!(kept.as_deref(), Some(&b"%PDF one"[..]));

    // It was read, and has another name now: the text is made with that name, of what was read.
    let read = "update source_documents set status = 'completed' where blob_key is not null";
    sqlx::query(read).execute(&mut *t.world.conn().await).await.expect("read");
    drive.rename(&lease, "Lease 2026.pdf");
    sync(&t, id, None).await;
    let (status, title, metadata, same) = told(&t, &lease).await;
    assert_eq!((status.as_str(), title.as_str()), ("extracting", "Lease 2026.pdf"));
    assert_eq!((&metadata["file_name"], &same), (&json!("Lease 2026.pdf"), &blob));
    assert_eq!((fetched(&t, &lease) + fetched(&t, &copy), t.count(ASKED).await), (1, 3));
    sync(&t, id, Some(JobKind::Full)).await;
    assert_eq!((fetched(&t, &lease) + fetched(&t, &copy), t.count(ASKED).await), (1, 3), "read again for nothing");
    assert_eq!(told(&t, &copy).await.0, "completed");

    let before = fetched(&t, &lease);
    drive.set_bytes(&lease, b"%PDF two");
    sync(&t, id, None).await;
    let (status, _, _, other) = told(&t, &lease).await;
    assert_eq!((status.as_str(), fetched(&t, &lease) - before, t.count(ASKED).await), ("pending", 1, 4));
    assert_ne!(other, blob);

    drive.trash(&lease, true);
    drive.remove(&copy);
    sync(&t, id, None).await;
    assert_eq!(t.documents(id).await, names(&[&sheet]));
}

/// F19, F20.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_had_says_why_and_holds_up_nobody() {
    let t = Sources::empty().await;
    let drive = t.fakes.drive();
    let put = |name: &str| drive.put_bytes(name, PDF, name.as_bytes());
    let (whole, large, kept, odd, gone, closed) =
        (put("whole"), put("large"), put("kept"), put("odd"), put("gone"), put("closed"));
    drive.say(&large, json!({ "size": "26214401" }));
    drive.say(&kept, json!({ "capabilities": { "canDownload": false } }));
    drive.say(&odd, json!({ "sha256Checksum": "0".repeat(64) }));
    t.fakes.always(&format!("/drive/v3/files/{gone}"), Some(Manner::Status(404)));
    t.fakes.always(&format!("/drive/v3/files/{closed}"), Some(Manner::Status(403)));
    let id = t.connect(DRIVE).await;
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");
    assert_eq!(t.documents(id).await, names(&[&whole]));
    let mut expected = vec![
        (format!("file:{large}"), "it is too large: files of up to 25 MB are read".to_owned()),
        (format!("file:{kept}"), "it may not be downloaded".to_owned()),
        (format!("file:{odd}"), "what Google Drive gives is not what it tells of".to_owned()),
        (format!("file:{closed}"), "it may not be downloaded".to_owned()),
    ];
    expected.sort();
    assert_eq!(reasons(&t, id).await, expected, "one that is gone is no failure");
    assert_eq!([fetched(&t, &large), fetched(&t, &kept), fetched(&t, &odd)], [0, 0, 2]);

    t.fakes.behave();
    drive.set_bytes(&odd, b"as it is said");
    let again: Vec<String> = [&closed, &odd].iter().map(|file| format!("file:{file}")).collect();
    jobs::retry_failures(&t.world.env, t.world.tenant_id, id, &again, "test").await.expect("a job");
    t.run().await;
    assert_eq!(t.documents(id).await, names(&[&whole, &closed, &odd]));
    assert_eq!(reasons(&t, id).await.len(), 2);
}

/// F16, F17.
#[tokio::test(flavor = "multi_thread")]
async fn a_pass_that_is_stopped_in_its_files_goes_on_without_fetching_one_twice() {
    for manner in [
        Manner::RateLimited { retry_after: RetryAfter::Seconds(20) },
        Manner::RateLimitedAs403,
        Manner::Truncated,
        Manner::Status(503),
    ] {
        let t = Sources::empty().await;
        let files: Vec<String> = (0..4)
            .map(|nth| t.fakes.drive().put_bytes(&format!("{nth}.pdf"), PDF, format!("%PDF {nth}").as_bytes()))
            .collect();
        t.fakes.nth("/drive/v3/files/", 3, manner.clone());
        let id = t.connect(DRIVE).await;
        t.run().await;
        assert!(t.documents(id).await.is_empty(), "{manner:?} stopped nothing");
        for _ in 0..20 {
            t.world.env.clock.advance(TimeDelta::minutes(2));
            t.run().await;
        }
        assert_eq!(t.documents(id).await, names(&files.iter().collect::<Vec<_>>()), "after {manner:?}");
        assert_eq!(t.fakes.requests("/drive/v3/files/"), 5, "a file was fetched twice after {manner:?}");
    }
}

/// F1, I1, I2.
#[tokio::test(flavor = "multi_thread")]
async fn killed_while_files_are_fetched_none_is_lost_or_doubled() {
    let points = [Point::BlobRowWritten, Point::BlobBytesWritten, Point::PullFetched, Point::PullBeforeCommit];
    stream::iter(points).map(kill_at).buffer_unordered(2).collect::<Vec<()>>().await;
}

fn worker(t: &Sources, crash: Option<&str>) -> Worker {
    let fakes = settings(&t.fakes);
    let env: Vec<(&str, &str)> = fakes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    programs::crashling(
        &t.world.database.url,
        crash,
        &[env, vec![("CRASHLING_REAL", "1"), ("BLOB_URL", cluster::blob_url())]].concat(),
    )
}

async fn kill_at(point: Point) {
    let t = Sources::with(cluster::cloned(), Clock::System, Fakes::start().await, &[]).await;
    let files: Vec<String> = (0..4)
        .map(|nth| t.fakes.drive().put_bytes(&format!("{nth}.pdf"), PDF, format!("%PDF {nth}").as_bytes()))
        .collect();
    let id = t.connect(DRIVE).await;
    let mut hurt = worker(&t, Some(&format!("{}:abort:1", point.name())));
    let died = wait_until(Duration::from_secs(60), async || hurt.has_ended().is_some());
    assert!(died.await, "crash point {} was never reached", point.name());
    let due = "update pgmq.q_ingestion_queue set vt = now()"; // the lease of the dead worker has to pass
    sqlx::query(due).execute(&mut *t.world.conn().await).await.expect("due");
    let _clean = worker(&t, None);
    let expected = names(&files.iter().collect::<Vec<_>>());
    let is_whole = wait_until(Duration::from_secs(90), async || t.documents(id).await == expected);
    assert!(is_whole.await, "I1 after {}: {:?}", point.name(), t.documents(id).await);
    for (nth, file) in files.iter().enumerate() {
        let key = told(&t, file).await.3.parse().expect("a key");
        let bytes = t.world.env.blobs.get(t.world.tenant_id, &key).await.expect("an answer");
        assert_eq!(bytes.as_deref(), Some(format!("%PDF {nth}").as_bytes()), "after {}", point.name());
    }
}
