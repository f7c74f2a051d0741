//! Outlook: memory agrees with the mailbox, whatever happens in it.

use chrono::TimeDelta;
use domain::{JobKind, SourceId};
use fakes::{Manner, RetryAfter};
use serde_json::json;
use testkit::Sources;
use testkit::sources::OUTLOOK;

const ANA: &str = "ana@larkfield.example";

/// The letters that memory holds.
async fn letters(t: &Sources, id: SourceId) -> Vec<String> {
    let documents = t.documents(id).await.into_iter();
    documents.filter_map(|name| name.strip_prefix("message:").map(str::to_owned)).collect()
}

fn truth(t: &Sources) -> Vec<String> {
    t.fakes.outlook().read_truth().into_iter().map(|kept| kept.id).collect()
}

async fn agrees(t: &Sources, id: SourceId, when: &str) {
    t.sync(id).await;
    t.run().await;
    assert_eq!(letters(t, id).await, truth(t), "{when}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_in_a_mailbox_happens_in_memory() {
    let t = Sources::empty().await;
    let outlook = t.fakes.outlook();
    let first = outlook.receive(ANA, "Two lifts", "We need two lifts from March.");
    let second = outlook.receive(ANA, "Re: Two lifts", "One of 60 ft.");
    let folder = outlook.add_folder("Larkfield", Some("inbox"));
    outlook.move_to(&second, &folder);
    let id = t.connect(OUTLOOK).await;
    t.run().await;
    assert_eq!(t.source(id).await.account.as_deref(), Some("office@harrowridge.example"));
    assert_eq!(letters(&t, id).await, truth(&t));
    assert!(
        t.source(id)
            .await
            .cursors
            .is_some_and(|cursor| cursor["folders"].as_object().is_some_and(|all| all.len() >= 4))
    );

    outlook.move_to(&first, "archive");
    outlook.mark_read(&second, true);
    outlook.rename_folder(&folder, "Larkfield Landscaping");
    agrees(&t, id, "a letter is archived, another read, and a folder renamed").await;
    assert_eq!(t.jobs(id).await[0].kind, JobKind::Delta);
    let draft = outlook.draft("The contract", "Dear Ana,");
    outlook.edit(&draft, json!({"subject": "The contract, at last"}));
    agrees(&t, id, "a draft is written").await;
    outlook.send(&draft);
    outlook.delete(&first);
    outlook.move_to(&second, "junkemail");
    agrees(&t, id, "it is sent, and others are thrown away").await;
    outlook.move_to(&first, "inbox");
    outlook.purge(&draft);
    agrees(&t, id, "one comes back, another is deleted for good").await;
    outlook.move_to(&second, &folder);
    outlook.delete_folder(&folder);
    agrees(&t, id, "a folder is thrown away with what is in it").await;
    outlook.move_folder(&folder, "inbox");
    agrees(&t, id, "and is taken out again").await;
    outlook.purge_folder(&folder);
    agrees(&t, id, "and is gone for good").await;
    assert_eq!(t.jobs(id).await[0].kind, JobKind::Full, "nobody can be asked for what was in it");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_expired_are_healed_with_the_deletions_meanwhile() {
    let t = Sources::empty().await;
    let outlook = t.fakes.outlook();
    outlook.fill(130, 6);
    let id = t.connect(OUTLOOK).await;
    t.run().await;
    let ids = outlook.ids();
    outlook.purge(&ids[3]);
    outlook.delete(&ids[4]);
    outlook.receive(ANA, "A third", "And a trencher.");
    outlook.expire_cursors();
    agrees(&t, id, "the links are gone").await;
    assert_eq!(t.jobs(id).await[0].kind, JobKind::Full);
    outlook.receive(ANA, "A fourth", "And nothing else.");
    agrees(&t, id, "it goes on from there").await;
    assert_eq!(t.jobs(id).await[0].kind, JobKind::Delta);
}

/// F17.
#[tokio::test(flavor = "multi_thread")]
async fn throttled_parts_and_a_refused_client_cost_no_letter() {
    let t = Sources::empty().await;
    let outlook = t.fakes.outlook();
    outlook.fill(60, 4);
    let id = t.connect(OUTLOOK).await;
    outlook.throttle_parts(4, 0);
    t.run().await;
    assert_eq!(letters(&t, id).await, truth(&t));
    outlook.receive(ANA, "A lift", "And a lift.");
    t.fakes.next("/outlook", Manner::RateLimited { retry_after: RetryAfter::Seconds(0) });
    t.sync(id).await;
    t.run().await;
    t.world.env.clock.advance(TimeDelta::minutes(10)); // and its token is no longer fresh
    t.run().await;
    assert_eq!(letters(&t, id).await, truth(&t), "asked to wait");
    // Our own secret is wrong: no mailbox is disconnected by that.
    t.fakes.reject_client(true);
    t.fakes.expire_access(fakes::OUTLOOK);
    t.sync(id).await;
    t.run().await;
    assert_eq!(t.source(id).await.status.as_str(), "active");
}
