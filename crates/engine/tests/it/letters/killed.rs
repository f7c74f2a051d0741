//! A worker that dies at any step of reading a mailbox.

use std::time::Duration;

use domain::Clock;
use domain::mail::Place;
use fakes::Fakes;
use futures_util::{StreamExt as _, stream};
use store::crash::Point;
use testkit::process::Worker;
use testkit::{Sources, cluster, wait_until};

use super::pigeon::{FILE, Loft};
use super::{Post, file, letter, mass_mail, with_files};
use crate::programs;

/// F1, I1, I2.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_of_reading_a_mailbox_no_letter_is_missed_or_doubled() {
    let of_pull = Point::ALL.iter().copied().filter(|point| point.name().starts_with("pull."));
    let points = of_pull.chain([Point::BlobBytesWritten, Point::MailFilesKept, Point::MailRemembered]);
    stream::iter(points).map(kill_at).buffer_unordered(2).collect::<Vec<()>>().await;
}

fn worker(post: &Post, crash: Option<&str>) -> Worker {
    let (url, file) = (&post.t.world.database.url, post.file.display().to_string());
    programs::crashling(url, crash, &[("CRASHLING_REAL", "1"), (FILE, &file)])
}

async fn is_settled(post: &Post) -> bool {
    let waiting = "select (select count(*) from sync_jobs where status in ('pending', 'running', 'paused'))
        + (select count(*) from pgmq.q_ingestion_queue)";
    post.t.count(waiting).await == 0
}

fn fill(loft: &mut Loft) {
    for nth in 0..6 {
        let files = vec![file("2", "a.pdf", "application/pdf", 4), file("3", "b.txt", "text/plain", 6)];
        let written = letter("ann@shop.example", &format!("Offer {nth}"), &format!("Loaves, {nth} of them."));
        loft.put(&format!("a{nth}"), with_files(files, written), &["%PDF", &format!("text {nth}")]);
        loft.put(&format!("b{nth}"), mass_mail(&format!("Sale {nth}")), &[]);
    }
}

async fn kill_at(point: Point) {
    let sources = Sources::with(cluster::cloned(), Clock::System, Fakes::start().await, &[]).await;
    let post = Post::of(sources, fill).await;
    let name = point.name();
    let clean = worker(&post, None);
    assert!(wait_until(Duration::from_secs(60), async || is_settled(&post).await).await, "the first sync does not end");
    drop(clean);

    post.change(|loft| {
        loft.change("a0", |kept| kept.letter.place = Place::Deleted);
        loft.change("a1", |kept| kept.letter.folders = vec!["Orders".into()]);
        loft.change("a2", |kept| {
            kept.letter.files.remove(0);
            kept.contents.remove(0);
        });
        loft.change("b0", |kept| kept.is_gone = true);
        let files = vec![file("2", "new.pdf", "application/pdf", 7)];
        loft.put("n1", with_files(files, letter("ann@shop.example", "New", "Fresh.")), &["%PDF-77"]);
        loft.put("n2", mass_mail("New sale"), &[]);
    });
    post.t.sync(post.id).await;
    let mut hurt = worker(&post, Some(&format!("{name}:abort:1")));
    let died = wait_until(Duration::from_secs(40), async || hurt.has_ended().is_some());
    assert!(died.await, "crash point {name} was never reached: remove it, or reach it");
    let due = "update pgmq.q_ingestion_queue set vt = now()"; // the lease of the dead worker has to pass
    sqlx::query(due).execute(&mut *post.t.world.conn().await).await.expect("due");
    let _clean = worker(&post, None);
    assert!(wait_until(Duration::from_secs(60), async || is_settled(&post).await).await, "I5: stuck after {name}");

    let mut expected: Vec<String> = vec!["attachment:n1/2".into(), "message:n1".into(), "attachment:a2/3".into()];
    expected.extend((1..6).map(|nth| format!("message:a{nth}")));
    expected.extend([1, 3, 4, 5].iter().flat_map(|nth| [2, 3].map(|part| format!("attachment:a{nth}/{part}"))));
    expected.sort();
    assert_eq!(post.documents().await, expected, "I1 I2 after {name}");
    let mut out: Vec<String> = post.left_out().await.into_iter().map(|(id, _)| id).collect();
    out.sort();
    assert_eq!(out, ["b1", "b2", "b3", "b4", "b5", "n2"], "after {name}");
    assert_eq!(post.t.count("select count(*) from processed_messages").await, 12, "after {name}");
    let strays = "select count(*) from source_documents d where d.blob_key is not null
        and not exists (select from tributary.blobs b where b.tenant_id = d.tenant_id and b.sha256 = d.blob_key)";
    assert_eq!(post.t.count(strays).await, 0, "a file without its bytes after {name}");
}
