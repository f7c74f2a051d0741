//! A contact is forgotten, and its letters with it: none of them comes back by itself.

use domain::mail::{Letter, Place};
use domain::{ContactId, JobKind};
use engine::mail::left_out;
use serde_json::Value;
use store::contacts::NewContact;

use super::pigeon::OWNER;
use super::{Post, file, letter, mass_mail, somebody, with_files};

const ANN: &str = "AnnZebra@shop.example";

/// A mailbox with letters from Ann and to her, one of hers that a rule left out, and one of Bob's; and Ann as a contact.
async fn filled() -> (Post, ContactId) {
    let post = Post::with(|loft| {
        let files = vec![file("2", "annzebra.csv", "text/csv", 15)];
        loft.put("a", with_files(files, letter(ANN, "Annzebra asks", "Twelve loaves.")), &["name,sum\nAda,12"]);
        loft.put("b", Letter { from: Some(somebody(ANN)), ..mass_mail("Annzebra's sale") }, &[]);
        let sent = Letter {
            place: Place::Sent,
            from: Some(somebody(OWNER)),
            to: vec![somebody(ANN)],
            ..letter("", "To Annzebra", "Thanks.")
        };
        loft.put("c", sent, &[]);
        loft.put("d", letter("bob@x.test", "Order", "Two loaves."), &[]);
    })
    .await;
    post.run().await;
    let new = NewContact { email: Some(ANN.to_lowercase()), ..NewContact::default() };
    let ann = engine::contacts::create(&post.t.world.env, &post.caller, new).await.expect("a contact");
    assert_eq!(post.said("message:a", "contact_id").await, ann.0);
    (post, ann)
}

/// The rows that name her, anywhere.
async fn named(post: &Post) -> i64 {
    let mut n = 0;
    for table in [
        "source_documents",
        "document_chunks",
        "processed_messages",
        "mail_facts",
        "forgotten",
        "contacts",
        "contact_keys",
    ] {
        let sql = format!("select count(*) from {table} t where t::text ilike '%annzebra%'");
        let counted: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_one(&mut *post.t.world.conn().await)
            .await
            .expect("a number");
        n += counted;
    }
    n
}

async fn forget(post: &Post, ann: ContactId) {
    engine::contacts::forget(&post.t.world.env, &post.caller, ann).await.expect("asked");
    post.t.run().await;
    assert_eq!(post.t.count("select count(*) from contacts").await, 0);
}

/// The letters that are out as forgotten.
async fn out(post: &Post) -> Vec<String> {
    let mut out = post.left_out().await;
    out.retain(|(_, reason)| reason == "forgotten");
    out.sort();
    out.into_iter().map(|(id, _)| id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_letters_of_a_forgotten_contact_go_and_stay_out() {
    let (post, ann) = filled().await;
    assert!(named(&post).await > 6);
    forget(&post, ann).await;
    assert_eq!(post.documents().await, ["message:d"]);
    assert_eq!(out(&post).await, ["a", "b", "c"], "what a rule had left out is out as forgotten, too");
    assert_eq!(named(&post).await, 0, "something still names her");
    let counted = "select (removed ->> 'letters')::bigint from forgotten where done_at is not null";
    assert_eq!(post.t.count(counted).await, 3);
    assert_eq!(post.t.count("select count(*) from mail_facts").await, 1, "those of Bob's letter");

    // Read again, changed, thrown away and back: it stays out, and nothing of it is written down.
    post.sync(Some(JobKind::Full)).await;
    post.change(|loft| loft.change("a", |kept| kept.letter.folders = vec!["Orders".into()]));
    post.sync(None).await;
    for place in [Place::Deleted, Place::Inbox] {
        post.change(|loft| loft.change("c", |kept| kept.letter.place = place));
        post.sync(None).await;
    }
    post.sync(Some(JobKind::Full)).await;
    assert_eq!(post.documents().await, ["message:d"]);
    assert_eq!(out(&post).await, ["a", "b", "c"]);
    assert_eq!(named(&post).await, 0, "a sync has brought something of hers back");

    // What she writes from now on is a stranger's. What a person asks for comes in, without her.
    post.change(|loft| loft.put("e", letter(ANN, "Hello again", "A loaf."), &[]));
    post.sync(None).await;
    assert_eq!(post.documents().await, ["message:d", "message:e"]);
    left_out::let_in(&post.t.world.env, &post.caller, post.id, "a").await.expect("let in");
    post.run().await;
    assert_eq!(post.documents().await, ["attachment:a/2", "message:a", "message:d", "message:e"]);
    for name in ["attachment:a/2", "message:a", "message:e"] {
        assert_eq!(post.said(name, "contact_id").await, Value::Null, "{name}");
    }
    assert_eq!(out(&post).await, ["b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_is_let_in_belongs_to_whoever_has_its_address_then() {
    let (post, ann) = filled().await;
    forget(&post, ann).await;
    let new = NewContact { email: Some(ANN.to_lowercase()), ..NewContact::default() };
    let again = engine::contacts::create(&post.t.world.env, &post.caller, new).await.expect("a contact");
    post.sync(Some(JobKind::Full)).await;
    assert_eq!(post.documents().await, ["message:d"], "a contact with the same address brings nothing back");
    left_out::let_in_all(&post.t.world.env, &post.caller, post.id, "forgotten").await.expect("let in");
    post.run().await;
    assert_eq!(post.documents().await, ["attachment:a/2", "message:a", "message:b", "message:c", "message:d"]);
    assert_eq!(post.said("message:a", "contact_id").await, again.0);

    // And is forgotten as before.
    forget(&post, again).await;
    assert_eq!(post.documents().await, ["message:d"]);
    assert_eq!(out(&post).await, ["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_rule_is_called_as_forgotten_letters_are() {
    let post = Post::with(|_| {}).await;
    let conditions = domain::mail::rules::Conditions { subjects: vec!["sale".into()], ..Default::default() };
    let change = engine::mail::rules::Change { is_on: None, conditions: Some(conditions) };
    let refused = engine::mail::rules::set(&post.t.world.env, &post.caller, post.id, "forgotten", change).await;
    assert!(matches!(refused, Err(engine::ActError::Invalid(_))), "{refused:?}");
}
