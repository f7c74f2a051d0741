//! Gmail: memory agrees with the mailbox, whatever happens in it.

use domain::{JobKind, SourceId};
use testkit::Sources;
use testkit::sources::GMAIL;

const ANA: &str = "Ana Quill <ana@larkfield.example>";

/// The letters that memory holds.
async fn letters(t: &Sources, id: SourceId) -> Vec<String> {
    let documents = t.documents(id).await.into_iter();
    documents.filter_map(|name| name.strip_prefix("message:").map(str::to_owned)).collect()
}

async fn agrees(t: &Sources, id: SourceId, when: &str) {
    t.sync(id).await;
    t.run().await;
    assert_eq!(letters(t, id).await, t.fakes.gmail().readable_ids(), "{when}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_in_a_mailbox_happens_in_memory() {
    let t = Sources::empty().await;
    let gmail = t.fakes.gmail();
    let first = gmail.receive(ANA, "Two lifts", "We need two lifts from March.");
    let second = gmail.receive_reply(&first, ANA, "Re: Two lifts", "One of 60 ft.");
    let label = gmail.make_label("Customers/Larkfield");
    gmail.label(&second, &[&label], &[]);
    let id = t.connect(GMAIL).await;
    t.run().await;
    assert_eq!(t.source(id).await.account.as_deref(), Some("office@harrowridge.example"));
    assert_eq!(letters(&t, id).await, gmail.readable_ids());

    let sent = gmail.send(ANA, "Re: Two lifts", "Yes, from 2 March.");
    gmail.archive(&first);
    gmail.read(&second);
    agrees(&t, id, "a letter is sent, another archived and read").await;
    let draft = gmail.draft(ANA, "The contract", "Dear Ana,");
    let draft = gmail.edit_draft(&draft, ANA, "The contract", "Dear Ana, here it is.");
    agrees(&t, id, "a draft is written").await;
    gmail.send_draft(&draft);
    gmail.trash(&second);
    gmail.mark_spam(&first);
    agrees(&t, id, "it is sent, and others are thrown away").await;
    gmail.untrash(&second);
    gmail.delete(&sent);
    agrees(&t, id, "one comes back, another is deleted for good").await;
    let fleeting = gmail.receive(ANA, "Never mind", "Never mind.");
    gmail.delete(&fleeting);
    agrees(&t, id, "a letter came and went").await;
}

/// F28.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_expired_is_healed_with_its_deletions() {
    let t = Sources::empty().await;
    let gmail = t.fakes.gmail();
    let first = gmail.receive(ANA, "Two lifts", "We need two lifts from March.");
    gmail.receive(ANA, "Another", "And a loader.");
    let id = t.connect(GMAIL).await;
    t.run().await;
    gmail.delete(&first);
    gmail.receive(ANA, "A third", "And a trencher.");
    gmail.expire_history();
    agrees(&t, id, "the history is gone").await;
    assert_eq!(t.jobs(id).await[0].kind, JobKind::Full);
    gmail.receive(ANA, "A fourth", "And nothing else.");
    agrees(&t, id, "it goes on from there").await;
    assert_eq!(t.jobs(id).await[0].kind, JobKind::Delta);
}

/// The mailbox is ahead of its own history, and a letter cannot be found at once.
#[tokio::test(flavor = "multi_thread")]
async fn what_lags_is_not_missed() {
    let t = Sources::empty().await;
    let gmail = t.fakes.gmail();
    gmail.receive(ANA, "Two lifts", "We need two lifts from March.");
    let id = t.connect(GMAIL).await;
    t.run().await;
    let before = letters(&t, id).await;
    gmail.lag_history(true);
    let late = gmail.receive(ANA, "A loader", "And a loader.");
    t.sync(id).await;
    t.run().await;
    assert_eq!(letters(&t, id).await, before, "nobody can know yet");
    gmail.lag_history(false);
    gmail.hide(&late, 1);
    t.sync(id).await;
    t.run().await;
    agrees(&t, id, "the history and the look-up have caught up").await;
}
