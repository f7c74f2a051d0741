//! The hooks of mailboxes from outside: what is proved is noted before it is answered, and nothing else leaves a trace.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use domain::Clock;
use fakes::{Fakes, TokenFault};
use futures_util::{StreamExt as _, stream};
use reqwest::Response;
use serde_json::{Value, json};
use testkit::{Sources, cluster};

use crate::app::{App, Folder, client, command, free_port, get};
use crate::intake::MASTER_KEY;

const WORD: &str = "canary-correct-horse-battery";
const STATE: &str = "canary-state-0123456789abcdefghijklmnop";
const PATH: &str = "projects/acme/subscriptions/mail";
const AUDIENCE: &str = "https://hear.example.com/webhooks/gmail";
const SIGNER: &str = "push@acme.iam.example";

struct Hooks {
    t: Sources,
    app: App,
    http: reqwest::Client,
    _folder: Folder,
}

impl Hooks {
    /// A server whose mailboxes were connected some time ago: of Outlook `n`, and one of Gmail.
    async fn new(n: usize, settings: &[(&str, &str)]) -> Self {
        let t = Sources::with(cluster::cloned(), Clock::System, Fakes::start().await, &[]).await;
        let sql = format!(
            "insert into connected_sources (id, tenant_id, provider, name, account, provider_subscription_id, subscription_expires_at, webhook_client_state)
                 select gen_random_uuid(), id, 'outlook', 'Outlook', n || '@acme.example', 'sub-' || n, now() + interval '3 days', '{STATE}'
                 from tenants, generate_series(1, {n}) n;
             insert into connected_sources (id, tenant_id, provider, name, account)
                 select gen_random_uuid(), id, 'gmail', 'Gmail', 'ann@acme.example' from tenants"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut *t.world.conn().await).await.expect("mailboxes");
        let (folder, port) = (Folder::new(), free_port());
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", &t.world.database.url).env("MASTER_KEY", MASTER_KEY).env("LOG", "debug");
        serve.envs(testkit::sources::settings(&t.fakes)).envs(settings.iter().copied());
        let app = App::start(serve, &["serve"], port).await;
        Self { t, app, http: client(), _folder: folder }
    }

    async fn post(&self, hook: &str, body: &Value) -> Response {
        let url = format!("{}/webhooks/{hook}", self.app.url);
        self.http.post(url).json(body).send().await.expect("an answer")
    }

    async fn status(&self, hook: &str, body: &Value) -> u16 {
        self.post(hook, body).await.status().as_u16()
    }

    async fn heard(&self) -> i64 {
        self.t.count("select count(*) from pending_syncs").await
    }

    async fn pushed(&self) -> i64 {
        self.t.count("select count(*) from sync_jobs where kind = 'push'").await
    }
}

fn notice(n: usize, state: &str) -> Value {
    json!({ "subscriptionId": format!("sub-{n}"), "clientState": state, "changeType": "created",
        "resource": "Users/u/Messages/m", "resourceData": { "id": "m" } })
}

fn envelope(address: &str, subscription: &str) -> Value {
    let told = json!({ "emailAddress": address, "historyId": 1_234 });
    json!({ "message": { "data": BASE64_STANDARD.encode(told.to_string()), "messageId": "1" }, "subscription": subscription })
}

/// S1, S5, S6.
#[tokio::test(flavor = "multi_thread")]
async fn outlooks_hook_echoes_questions_and_believes_secrets_alone() {
    let hooks = Hooks::new(3, &[]).await;
    for _ in 0..2 {
        let url = format!("{}/webhooks/outlook?validationToken=Validation%3a+Testing+%3Cb%3E%2B1", hooks.app.url);
        let echo = hooks.http.post(url).header("content-type", "text/plain").send().await.expect("an answer");
        let kind = echo.headers()["content-type"].to_str().expect("a type").to_owned();
        assert_eq!((echo.status().as_u16(), kind.as_str()), (200, "text/plain; charset=utf-8"));
        assert_eq!(echo.headers()["x-content-type-options"], "nosniff");
        assert_eq!(echo.text().await.expect("a body"), "Validation: Testing <b>+1");
    }
    let (good, wrong, unknown) = (notice(1, STATE), notice(2, "canary-of-another"), notice(99, STATE));
    let secretless = json!({ "subscriptionId": "sub-2", "changeType": "created" });
    for (values, status) in [
        (json!([wrong]), 403),
        (json!([wrong, secretless]), 403),
        (json!([unknown]), 200),
        (json!([unknown, wrong]), 200),
        (json!([]), 200),
    ] {
        assert_eq!(hooks.status("outlook", &json!({ "value": values })).await, status, "{values}");
        assert_eq!(hooks.heard().await, 0, "{values} was heard");
    }
    assert_eq!(hooks.status("outlook", &json!({ "no": "list" })).await, 400);
    assert_eq!(hooks.status("sparrow", &json!({ "value": [good] })).await, 404);
    assert_eq!(get(&hooks.app.url, "/webhooks/outlook").await.0, 405);
    let large = json!({ "value": ["x".repeat(2_000_000)] });
    assert_eq!(hooks.status("outlook", &large).await, 413);

    assert_eq!(hooks.status("outlook", &json!({ "value": [wrong, unknown, good, notice(3, STATE)] })).await, 200);
    assert_eq!((hooks.heard().await, hooks.pushed().await), (2, 2), "the good ones of a batch count");
    let removed = json!({ "subscriptionId": "sub-1", "clientState": STATE, "lifecycleEvent": "subscriptionRemoved" });
    assert_eq!(hooks.status("outlook", &json!({ "value": [removed] })).await, 200);
    let expired = "select count(*) from connected_sources where status = 'subscription_expired' and provider_subscription_id is null";
    assert_eq!(hooks.t.count(expired).await, 1);
    assert!(!hooks.app.printed().contains("canary"), "I7: a secret is in the log");
}

/// S1, S2, I7.
#[tokio::test(flavor = "multi_thread")]
async fn gmails_hook_wants_the_word_or_is_closed() {
    let settings = [
        ("GMAIL_PUBSUB_TOPIC", "projects/acme/topics/mail"),
        ("GMAIL_PUBSUB_TOKEN", WORD),
        ("GMAIL_PUBSUB_SUBSCRIPTION", PATH),
    ];
    let hooks = Hooks::new(0, &settings).await;
    let good = envelope("Ann@Acme.example", PATH);
    let shown = async |header: Option<&str>, query: &str, body: &Value| {
        let request = hooks.http.post(format!("{}/webhooks/gmail{query}", hooks.app.url)).json(body);
        let request = header.into_iter().fold(request, |request, word| request.header("x-goog-pubsub-token", word));
        request.send().await.expect("an answer").status().as_u16()
    };
    let by_query = format!("?token={WORD}");
    for (header, query, body, status) in [
        (None, "", &good, 403),
        (Some("canary-wrong"), "", &good, 403),
        (None, "?token=canary-wrong", &good, 403),
        (Some("canary-wrong"), by_query.as_str(), &good, 403),
        (Some(WORD), "", &envelope("ann@acme.example", "projects/acme/subscriptions/other"), 403),
        (Some(WORD), "", &envelope("nobody@acme.example", PATH), 200),
        (Some(WORD), "", &json!({ "message": { "data": "%%%" }, "subscription": PATH }), 200),
    ] {
        assert_eq!(shown(header, query, body).await, status, "{header:?} {query} {body}");
        assert_eq!(hooks.heard().await, 0, "{header:?} {query} {body} was heard");
    }
    assert_eq!(shown(Some(WORD), "", &good).await, 200);
    assert_eq!(shown(None, &by_query, &good).await, 200);
    assert_eq!((hooks.heard().await, hooks.pushed().await), (1, 1));
    assert!(!hooks.app.printed().contains("canary"), "I7: a word is in the log");

    let closed = Hooks::new(0, &settings[..1]).await;
    assert_eq!(closed.status("gmail", &good).await, 404, "it is open without a proof");
}

/// S1, S5.
#[tokio::test(flavor = "multi_thread")]
async fn gmails_hook_believes_what_google_has_signed_for_it() {
    let settings = [
        ("GMAIL_PUBSUB_TOPIC", "projects/acme/topics/mail"),
        ("GMAIL_PUBSUB_AUDIENCE", AUDIENCE),
        ("GMAIL_PUBSUB_SERVICE_ACCOUNT", SIGNER),
        ("GMAIL_PUBSUB_TOKEN", WORD),
    ];
    let hooks = Hooks::new(0, &settings).await;
    let good = envelope("ann@acme.example", PATH);
    let pubsub = hooks.t.fakes.pubsub();
    let shown = async |token: Option<String>, query: &str| {
        let request = hooks.http.post(format!("{}/webhooks/gmail{query}", hooks.app.url)).json(&good);
        let request = token.into_iter().fold(request, |request, token| request.bearer_auth(token));
        request.send().await.expect("an answer").status().as_u16()
    };
    use TokenFault::{Absent, Audience, Email, Expired, Forged, Future, Issuer, UnknownKey, Unsigned, Unverified};
    for fault in [Issuer, Audience, Email, Unverified, Expired, Future, UnknownKey, Forged, Unsigned, Absent] {
        assert_eq!(shown(pubsub.token(AUDIENCE, SIGNER, Some(fault)), "").await, 403, "{fault:?}");
    }
    assert_eq!(shown(pubsub.token("https://other.example", SIGNER, None), "").await, 403, "another audience");
    assert_eq!(shown(None, &format!("?token={WORD}")).await, 403, "a word is no signature");
    assert_eq!(hooks.heard().await, 0);
    let token = pubsub.token(AUDIENCE, SIGNER, None);
    assert_eq!(shown(token.clone(), "").await, 200);
    assert_eq!(shown(token, "").await, 200, "a token may be used again, and means no more then");
    assert_eq!((hooks.heard().await, hooks.pushed().await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_mailboxes_told_of_at_once_are_answered_quickly_and_each_noted_once() {
    let hooks = Hooks::new(1_000, &[]).await;
    let told = stream::iter(1..=1_000_usize).map(async |n| {
        let begun = Instant::now();
        let status = hooks.status("outlook", &json!({ "value": [notice(n, STATE)] })).await;
        assert_eq!(status, 200);
        begun.elapsed()
    });
    let mut took: Vec<Duration> = told.buffer_unordered(50).collect().await;
    took.sort();
    println!("p50 {:?}, p99 {:?}, longest {:?}", took[500], took[990], took[999]);
    assert!(took[990] < Duration::from_secs(1), "p99 {:?}", took[990]);
    assert_eq!(hooks.heard().await, 1_000);
    let started = testkit::wait_until(Duration::from_secs(10), async || hooks.pushed().await == 1_000);
    assert!(started.await, "{} syncs", hooks.pushed().await);
}
