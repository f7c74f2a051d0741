//! A channel on a mailbox: one activity and one document for each letter.

use domain::ChannelId;
use domain::mail::Place;
use engine::ActError;
use engine::mail::{channel, left_out};
use serde_json::{Value, json};
use store::channels::ChannelChange;
use store::mail::channels::{self, NewOnMailbox};

use super::{Post, file, letter, mass_mail, with_files};

/// The channel's activities by the letter that each is: its state and its fields.
async fn activities(post: &Post) -> Vec<(String, String, Value, Value)> {
    sqlx::query_as(
        "select event_key, processing_status, raw_data, metadata from activities where tenant_id = $1 order by event_key",
    )
    .bind(post.t.world.tenant_id.0)
    .fetch_all(&mut *post.t.world.conn().await)
    .await
    .expect("activities")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_letter_that_a_channel_chooses_is_one_activity_and_one_document() {
    let post = Post::with(|loft| {
        loft.put("old", letter("ann@shop.example", "Before", "Long ago."), &[]);
    })
    .await;
    let (env, tenant_id) = (&post.t.world.env, post.t.world.tenant_id);
    post.run().await;
    let refused =
        channel::add(env, &post.caller, post.id, channel::NewMailChannel { name: "mail".into(), ..Default::default() });
    assert!(matches!(refused.await, Err(ActError::Conflict(_))), "such a channel stands on a Gmail source");
    let new = NewOnMailbox {
        provider_code: "gmail",
        name: "Mail",
        person_id: None,
        auto_create_contacts: true,
        source_id: post.id,
        query: "in:inbox is:unread",
    };
    let mut conn = post.t.world.conn().await;
    channels::create(&mut conn, env.clock.sql(), tenant_id, new).await.expect("a channel");
    drop(conn);

    let fresh = |from: &str, subject: &str| {
        let now = Some(env.clock.now() + chrono::TimeDelta::minutes(1));
        domain::mail::Letter { received_at: now, ..letter(from, subject, "Twelve loaves by Monday.") }
    };
    post.change(|loft| {
        loft.change("old", |kept| kept.letter.folders = vec!["Read".into()]);
        let files = vec![file("2", "a.pdf", "application/pdf", 4)];
        loft.put("a", with_files(files, fresh("Ann Lark <ann@shop.example>", "Order")), &["%PDF"]);
        loft.put("b", domain::mail::Letter { place: Place::Other, ..fresh("bob@x.test", "Elsewhere") }, &[]);
        loft.put("c", domain::mail::Letter { received_at: fresh("", "").received_at, ..mass_mail("Sale") }, &[]);
    });
    post.sync(None).await;
    let came = activities(&post).await;
    assert_eq!(came.len(), 1, "{came:?}");
    let (key, status, raw, metadata) = &came[0];
    assert_eq!((key.as_str(), status.as_str()), ("a", "raw"));
    assert_eq!(
        (&raw["source_type"], &raw["content"], &raw["subject"]),
        (&json!("text"), &json!("Twelve loaves by Monday."), &json!("Order"))
    );
    assert_eq!((&metadata["message_id"], &metadata["from_key"]), (&json!("a"), &json!("ann@shop.example")));
    assert_eq!(metadata["attachments"][0]["name"], json!("a.pdf"));
    // Its file has one document, which is the mailbox's.
    post.t.run().await;
    assert_eq!(post.t.count("select count(*) from source_documents where blob_key is not null").await, 1);
    assert_eq!(
        post.t.count("select count(*) from tributary.activity_attachments where remembered_at is null").await,
        0
    );
    let matched = "select count(*) from activities where contact_id is not null";
    assert_eq!(post.t.count(matched).await, 1, "its contact was made");
    assert_eq!(post.t.count("select count(*) from source_documents where document_type like 'activity.%'").await, 0);

    // Read again, it is the same activity. An agent's result is part of the letter's document, whatever is read again later.
    post.sync(Some(domain::JobKind::Full)).await;
    assert_eq!(activities(&post).await.len(), 1);
    complete(&post, json!({ "summary": "Ann orders bread.", "facts": ["wants rye"] })).await;
    post.t.run().await;
    let expected = "Twelve loaves by Monday.\n\n## Summary\n\nAnn orders bread.\n\n## Facts\n\n- wants rye";
    let text = post.said("message:a", "text").await;
    assert!(text.as_str().is_some_and(|text| text.ends_with(expected)), "{text}");
    post.change(|loft| loft.change("a", |kept| kept.letter.folders = vec!["Orders".into()]));
    post.sync(None).await;
    assert_eq!(post.said("message:a", "text").await, text);
    assert_eq!(post.said("message:a", "source_metadata").await["folders"], json!(["Orders"]));

    // What a person lets in is an event then.
    left_out::let_in(env, &post.caller, post.id, "c").await.expect("let in");
    post.run().await;
    let keys: Vec<String> = activities(&post).await.into_iter().map(|(key, ..)| key).collect();
    assert_eq!(keys, ["a", "c"]);
    assert_eq!(post.t.count("select count(*) from source_documents where document_type like 'activity.%'").await, 0);
}

/// Adds a channel on the made-up mailbox, as one on a Gmail source is added.
async fn add(post: &Post, name: &str, query: &str) -> ChannelId {
    let new = NewOnMailbox {
        provider_code: "gmail",
        name,
        person_id: None,
        auto_create_contacts: false,
        source_id: post.id,
        query,
    };
    let (mut conn, at) = (post.t.world.conn().await, post.t.world.env.clock.sql());
    let made = channels::create(&mut conn, at, post.t.world.tenant_id, new).await;
    made.expect("a channel")
}

/// A letter of a minute from now, when every channel is there.
fn fresh(post: &Post, subject: &str) -> domain::mail::Letter {
    let received_at = Some(post.t.world.env.clock.now() + chrono::TimeDelta::minutes(1));
    domain::mail::Letter { received_at, ..letter("ann@shop.example", subject, "Twelve loaves.") }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_remembered_onto_the_letter_also_when_its_channel_is_deleted() {
    let post = Post::with(|_| {}).await;
    post.run().await;
    let env = &post.t.world.env;
    let id = add(&post, "Mail", "in:inbox").await;
    post.change(|loft| loft.put("a", fresh(&post, "Order"), &[]));
    post.sync(None).await;
    engine::channels::delete(env, &post.caller, id).await.expect("deleted");
    complete(&post, json!({ "summary": "Ann orders bread." })).await;
    post.t.run().await;
    let text = post.said("message:a", "text").await;
    assert!(text.as_str().is_some_and(|text| text.ends_with("## Summary\n\nAnn orders bread.")), "{text}");
    assert_eq!(post.t.count("select count(*) from source_documents where document_type like 'activity.%'").await, 0);
    // Read again, the letter keeps it.
    post.change(|loft| loft.change("a", |kept| kept.letter.folders = vec!["Orders".into()]));
    post.sync(Some(domain::JobKind::Full)).await;
    assert_eq!(post.said("message:a", "text").await, text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_on_a_mailbox_is_disabled_enabled_and_changed_and_has_no_secrets() {
    let post = Post::with(|_| {}).await;
    post.run().await;
    let (env, caller) = (&post.t.world.env, &post.caller);
    let id = add(&post, "Mail", "subject:order").await;
    let standing = channel::get(env, caller, id).await.expect("a channel");
    assert!(standing.is_on_mailbox());
    assert_eq!(standing.mailbox.map(|mailbox| mailbox.id), Some(post.id.0));
    assert!(matches!(engine::channels::open(env, caller, id).await, Err(ActError::Conflict(_))));
    assert!(matches!(
        engine::channels::rotate(env, caller, id, engine::channels::Rotation::default()).await,
        Err(ActError::Conflict(_))
    ));

    let change = |query: &str| ChannelChange { query: Some(query.into()), ..ChannelChange::default() };
    let refused = engine::channels::change(env, caller, id, change("in:")).await;
    assert!(matches!(refused, Err(ActError::Invalid(_))), "{refused:?}");
    engine::channels::change(env, caller, id, change("subject:offer")).await.expect("changed");
    post.change(|loft| {
        loft.put("a", fresh(&post, "Order"), &[]);
        loft.put("b", fresh(&post, "Offer"), &[]);
    });
    post.sync(None).await;
    engine::channels::set_active(env, caller, id, false).await.expect("disabled");
    post.change(|loft| loft.put("c", fresh(&post, "Another offer"), &[]));
    post.sync(None).await;
    engine::channels::set_active(env, caller, id, true).await.expect("enabled");
    post.change(|loft| loft.put("d", fresh(&post, "A last offer"), &[]));
    post.sync(None).await;
    let keys: Vec<String> = activities(&post).await.into_iter().map(|(key, ..)| key).collect();
    assert_eq!(keys, ["b", "d"]);

    // A channel with a URL has no query.
    let new = engine::channels::NewChannel { provider: "generic".into(), name: "shop".into(), ..Default::default() };
    let shop = engine::channels::add(env, caller, new).await.expect("a channel").id;
    let refused = engine::channels::change(env, caller, shop, change("in:inbox")).await;
    assert!(matches!(refused, Err(ActError::Invalid(_))), "{refused:?}");
}

/// Claims and completes every activity, as an agent does.
async fn complete(post: &Post, result: Value) {
    let mut conn = post.t.world.conn().await;
    for sql in [
        "update activities set processing_status = 'processing', locked_at = now(), locked_by = gen_random_uuid() where processing_status = 'raw'",
        "update activities set processing_status = 'completed', locked_at = null, locked_by = null, processed_data = $1 where processing_status = 'processing'",
    ] {
        let mut query = sqlx::query(sql);
        if sql.contains("$1") {
            query = query.bind(&result);
        }
        query.execute(&mut *conn).await.expect("an agent's work");
    }
}
