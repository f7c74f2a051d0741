//! A notice without its proof is not heard: nothing is read, nothing is fetched, and the answer is the documented one.

use engine::mail::notices::Refused;
use http::HeaderMap;
use serde_json::{Value, json};

use super::mailbox::Post;
use super::provider::{AUDIENCE, LARK, PATH, PIGEON, TOKEN, TOPIC};

fn is_unproved(answer: &Result<(), Refused>) -> bool {
    matches!(answer, Err(Refused::Unproved(_)))
}

/// S1, S3.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_is_believed_by_its_secret_alone() {
    let p = Post::new().await;
    let id = p.connect(PIGEON).await;
    let good = p.good("changed");
    let with = |key: &str, value: Value| {
        let mut notice = good.clone();
        notice[key] = value;
        notice
    };
    let wrong = with("state", json!("x".repeat(43)));
    let unknown = with("of", json!("s999-nobody"));
    let secret = good["state"].as_str().expect("a secret");
    for (posted, is_refused) in [
        (json!([wrong]), true),
        (json!([wrong, wrong]), true),
        (json!([with("state", Value::Null)]), true),
        (json!([with("state", json!(""))]), true),
        (json!([with("state", json!(&secret[1..]))]), true),
        (json!([with("state", json!(format!("{secret} ")))]), true),
        (json!([{ "of": good["of"], "tells": "removed" }]), true),
        (json!([{ "of": good["of"], "state": "y", "tells": "reauthorize" }]), true),
        (json!([unknown]), false),
        (json!([unknown, wrong]), false),
        (json!([]), false),
    ] {
        let answer = p.post("pigeon", &posted).await;
        assert_eq!((is_unproved(&answer), answer.is_ok()), (is_refused, !is_refused), "{posted}: {answer:?}");
        assert!(p.pending(id).await.is_none(), "{posted} was heard");
    }
    assert!(p.t.source(id).await.subscription_expires_at.is_some(), "a forged notice took its subscription");
    assert!(matches!(p.post("pigeon", &json!({ "value": 7 })).await, Err(Refused::Malformed(_))));

    // The good ones of a batch count.
    p.post("pigeon", &json!([wrong, unknown, good])).await.expect("taken");
    assert!(p.pending(id).await.is_some());
}

/// S5: a question proves nothing, and nothing follows from it, however often it comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_repeated_and_nothing_else() {
    let p = Post::new().await;
    let (pigeon, lark) = (p.notices.hook("pigeon").expect("a hook"), p.notices.hook("lark").expect("a hook"));
    assert!(p.notices.hook("sparrow").is_none());
    for _ in 0..3 {
        let echo = p.notices.echo(pigeon, Some("Validation: <b>1</b>")).expect("an answer").expect("an echo");
        assert_eq!(echo, "Validation: <b>1</b>");
    }
    assert!(p.notices.echo(pigeon, None).is_none());
    assert!(p.notices.echo(lark, Some("x")).is_none(), "a topic asks nothing");
    for odd in [String::new(), "a\r\nSet-Cookie: x".into(), "x".repeat(5_000)] {
        assert!(matches!(p.notices.echo(pigeon, Some(&odd)), Some(Err(Refused::Malformed(_)))), "{odd:?}");
    }
    assert_eq!(p.t.count("select count(*) from pending_syncs").await, 0);
}

fn shows(word: &str) -> HeaderMap {
    HeaderMap::from_iter([("x-goog-pubsub-token".parse().expect("a name"), word.parse().expect("a value"))])
}

/// S1, S2.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_is_believed_by_its_word_and_closed_without_one() {
    const WORD: &str = "correct horse battery";
    let p = Post::with(&[(TOPIC.env, "projects/p/topics/t"), (TOKEN.env, WORD)], |_| {}).await;
    let hook = p.notices.hook("lark").expect("a hook");
    let admitted = async |headers: HeaderMap, word: Option<&str>| p.notices.admit(hook, &headers, word).await;
    assert!(admitted(shows(WORD), None).await.is_ok());
    assert!(admitted(HeaderMap::new(), Some(WORD)).await.is_ok());
    assert!(is_unproved(&admitted(HeaderMap::new(), None).await));
    assert!(is_unproved(&admitted(HeaderMap::new(), Some("correct horse")).await));
    assert!(is_unproved(&admitted(shows("wrong"), Some(WORD)).await), "the header goes before");

    for settings in
        [vec![], vec![(TOPIC.env, "projects/p/topics/t")], vec![(TOKEN.env, "")], vec![(AUDIENCE.env, "us")]]
    {
        let closed = Post::with(&settings, |_| {}).await;
        let hook = closed.notices.hook("lark").expect("a hook");
        let answer = closed.notices.admit(hook, &shows(""), Some("")).await;
        assert!(matches!(answer, Err(Refused::Closed)), "{settings:?}: {answer:?}");
    }
}

/// S17: an address names a mailbox of every tenant that has connected it.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_names_an_account_in_every_tenant_that_has_it() {
    let settings = [(TOPIC.env, "projects/p/topics/t"), (TOKEN.env, "word"), (PATH.env, "projects/p/subscriptions/s")];
    let mut p = Post::with(&settings, |_| {}).await;
    let ours = p.connect(LARK).await;
    let (us, them) = (p.t.world.tenant_id, p.t.world.other_tenant("another").await);
    p.t.world.tenant_id = them;
    let theirs = p.connect(LARK).await;
    let notice = |account: &str, via: &str| json!([{ "account": account, "via": via }]);
    let path = "projects/p/subscriptions/s";
    for (posted, is_refused) in [
        (notice("ann@acme.example", "projects/p/subscriptions/other"), true),
        (json!([{ "account": "ann@acme.example" }]), true),
        (notice("nobody@acme.example", path), false),
        (json!({ "not": "a list" }), false), // it would be sent again for a week
    ] {
        let answer = p.post("lark", &posted).await;
        assert_eq!((is_unproved(&answer), answer.is_ok()), (is_refused, !is_refused), "{posted}: {answer:?}");
        assert_eq!(p.t.count("select count(*) from pending_syncs").await, 0, "{posted} was heard");
    }
    p.post("lark", &notice("ann@acme.example", path)).await.expect("taken");
    assert!(p.pending(theirs).await.is_some());
    p.t.world.tenant_id = us;
    assert!(p.pending(ours).await.is_some());
}
