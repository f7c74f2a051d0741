//! Subscriptions live as long as their mailbox is connected, whatever happens to them, and the mailbox is read meanwhile.

use connectors::pull::PullError;
use domain::{SourceStatus, Transport};
use engine::mail::subscriptions;
use engine::pull::words::changes::changes;
use engine::pull::{connect, jobs};

use super::mailbox::{HOOK, Post};
use super::provider::{LARK, PIGEON, TOKEN, TOPIC};

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_is_told_of_soon_after_it_is_connected_and_its_secret_is_stored_before() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    let made = p.loft().made.clone();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].url, format!("{HOOK}/webhooks/pigeon"));
    assert!(made[0].client_state.len() >= 40, "a secret that can be guessed");
    let stored = "select count(*) from connected_sources where webhook_client_state is not null and provider_subscription_id is not null";
    assert_eq!(p.t.count(stored).await, 1);
    let source = p.t.source(id).await;
    let micros = |at: chrono::DateTime<chrono::Utc>| at.timestamp_micros(); // the database keeps no more
    assert_eq!(source.subscription_expires_at.map(micros), Some(micros(made[0].expires_at)));
    let told = changes(&p.t.world.env, &source).expect("words");
    assert_eq!(
        told,
        "Pigeon tells of changes; after 1h without a word it is asked, and every 1m while it does not tell"
    );
    assert_eq!(p.pushed(id).await.len(), 1, "what changed before it was told of is read");

    // Renewed long before it ends, once.
    p.advance(86_400);
    p.keep().await;
    p.keep().await;
    assert_eq!(p.asked(), (1, 1, 0));
    assert_eq!(p.pushed(id).await.len(), 1, "a renewal is followed by no sync");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_provider_can_reach_us_mailboxes_are_polled_and_say_so() {
    let p = Post::with(&[], |_| {}).await;
    let id = p.connect_quietly().await;
    p.keep().await;
    assert_eq!(p.loft().n_subscribed, 0);
    let source = p.t.source(id).await;
    assert_eq!((source.status, source.sync_every_secs), (SourceStatus::Active, 60.0));
    let told = changes(&p.t.world.env, &source).expect("words");
    assert_eq!(told, "Pigeon is asked for changes every 1m; it cannot tell of them while PUBLIC_URL is not set");
    p.loft().write("a letter");
    p.advance(61);
    assert_eq!(jobs::sync_due(&p.t.world.env).await.expect("an answer"), 1);
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_needs_no_address_of_ours_but_a_proof() {
    for (settings, is_told) in [
        (vec![], false),
        (vec![(TOPIC.env, "projects/p/topics/t")], false),
        (vec![(TOPIC.env, "projects/p/topics/t"), (TOKEN.env, "correct horse battery")], true),
    ] {
        let p = Post::with(&settings, |_| {}).await;
        let id = p.connect_quietly().await;
        p.keep().await;
        assert_eq!(p.loft().n_subscribed, 0, "no Pigeon");
        let lark = p.connect_at(LARK).await;
        p.keep().await;
        assert_eq!(p.asked().0 == 1, is_told, "{settings:?}");
        assert!(id != lark && p.status(lark).await == SourceStatus::Active);
    }
}

/// F28.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_subscription_is_made_anew_and_what_changed_meanwhile_is_read() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;

    // Its provider says so.
    p.loft().write("a letter of which nobody tells");
    p.tell("removed").await;
    p.loft().made.clear();
    let source = p.t.source(id).await;
    assert_eq!((source.status, source.subscription_expires_at), (SourceStatus::SubscriptionExpired, None));
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0"], "it is read all the same");
    p.keep().await;
    assert_eq!((p.status(id).await, p.asked().0), (SourceStatus::Active, 2));

    // It is found out at the renewal.
    p.loft().write("another one");
    p.loft().made.clear();
    p.advance(86_400);
    p.keep().await;
    p.advance(3);
    p.t.run().await;
    assert_eq!((p.asked().0, p.t.documents(id).await.len()), (3, 2));
    assert_eq!(p.status(id).await, SourceStatus::Active);

    // The provider wants a fresh token.
    p.tell("reauthorize").await;
    p.keep().await;
    assert_eq!(p.loft().n_renewed, 1);
    assert!(p.pending(id).await.is_none(), "nothing has changed");

    // Notices were lost.
    p.loft().write("a third one");
    p.tell("missed").await;
    p.advance(3);
    p.t.run().await;
    assert_eq!(p.t.documents(id).await.len(), 3);
}

/// F28.
#[tokio::test(flavor = "multi_thread")]
async fn while_it_cannot_be_renewed_a_mailbox_is_polled_and_told_of_again_later() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    let refused = || PullError::Forbidden { who: "Pigeon", code: "LOFT_FULL".into() };
    for _ in 0..8 {
        p.advance(86_400 + 7_200);
        p.loft().troubles = vec![refused()];
        p.keep().await;
    }
    p.loft().troubles.clear();
    let source = p.t.source(id).await;
    assert_eq!(
        (source.status, source.status_message.as_deref()),
        (SourceStatus::SubscriptionExpired, Some("forbidden: LOFT_FULL"))
    );
    let told = changes(&p.t.world.env, &source).expect("words");
    assert_eq!(told, "Pigeon is asked for changes every 1m, until it tells of them (forbidden: LOFT_FULL)");
    p.loft().write("a letter");
    p.advance(61);
    assert_eq!(jobs::sync_due(&p.t.world.env).await.expect("an answer"), 1);
    p.t.run().await;
    assert_eq!(p.t.documents(id).await, ["message:0"]);
    assert_eq!(p.status(id).await, SourceStatus::SubscriptionExpired, "a sync is no subscription");

    p.loft().write("another one");
    p.advance(7_200);
    p.keep().await;
    p.advance(3);
    p.t.run().await;
    assert_eq!((p.status(id).await, p.t.documents(id).await.len()), (SourceStatus::Active, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_lets_a_mailbox_go_has_its_provider_told_no_more() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    let (env, tenant) = (&p.t.world.env, p.t.world.tenant_id);
    let notice = p.good("changed");
    p.tell("changed").await;
    assert!(connect::disconnect(env, tenant, id).await.expect("disconnected"));
    assert_eq!((p.asked(), p.loft().made.len()), ((1, 0, 1), 0));
    assert!(p.pending(id).await.is_none(), "what was heard of it is forgotten");
    p.post("pigeon", &serde_json::json!([notice])).await.expect("a late notice is told to nobody");
    p.keep().await;
    assert_eq!(p.loft().n_subscribed, 1);

    // Connected again, it is told of again. A provider that is down keeps nobody from letting it go.
    let key = domain::Secret::new("ring-1");
    let again = connect::with_key(env, tenant, PIGEON, &key, None, Transport::Rest).await.expect("a source");
    assert_eq!(again, id);
    p.t.run().await;
    p.keep().await;
    assert_eq!(p.loft().n_subscribed, 2);
    p.loft().is_down = true;
    assert!(connect::forget(env, tenant, id, "test").await.expect("an answer").is_some());
    p.t.run().await;
    assert_eq!(p.t.count("select count(*) from connected_sources where provider = 'pigeon'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_providers_of_a_forgotten_tenant_are_told_to_stop() {
    let p = Post::new().await;
    p.connect(PIGEON).await;
    let (env, tenant) = (&p.t.world.env, p.t.world.tenant_id);
    subscriptions::remove_all(env, tenant).await.expect("asked");
    assert_eq!((p.asked(), p.loft().made.len()), ((1, 0, 1), 0));
    // While it is being forgotten, nothing is subscribed to again.
    sqlx::query("update tenants set forgetting_at = now() where id = $1")
        .bind(tenant.0)
        .execute(&mut *p.t.world.conn().await)
        .await
        .expect("taken out of service");
    sqlx::query("update connected_sources set subscription_due_at = null")
        .execute(&mut *p.t.world.conn().await)
        .await
        .expect("due");
    p.keep().await;
    assert_eq!(p.loft().n_subscribed, 1);
}

/// One process asks a provider at a time.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_make_one_subscription() {
    let p = Post::new().await;
    let env = &p.t.world.env;
    let key = domain::Secret::new("ring-1");
    connect::with_key(env, p.t.world.tenant_id, PIGEON, &key, None, Transport::Rest).await.expect("a source");
    let looks = (0..8).map(|_| engine::mail::subscriptions::keep(env));
    assert!(futures_util::future::join_all(looks).await.iter().all(Result::is_ok));
    assert_eq!(p.loft().n_subscribed, 1);
}
