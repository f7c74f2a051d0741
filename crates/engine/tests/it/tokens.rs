//! Tokens: however many tasks want one, it is refreshed once, no transaction is open meanwhile, and a crash ends in a good pair or in Reconnect.

use std::time::Duration;

use chrono::TimeDelta;
use engine::pull::tokens::{self, NoToken, Timing};
use fakes::Manner;
use testkit::sources::{HUBSPOT, QUICKBOOKS};
use testkit::{Sources, wait_until};

const TOKEN: &str = "/oauth/quickbooks/token";

async fn stale(t: &Sources) {
    let sql = "update connected_sources set token_expires_at = $1 where provider = 'quickbooks'";
    sqlx::query(sql).bind(t.world.env.clock.now()).execute(&mut *t.world.conn().await).await.expect("a stale token");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_workers_with_one_stale_token_make_one_refresh_and_hold_no_transaction() {
    let t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    stale(&t).await;
    t.fakes.next(TOKEN, Manner::Delay(Duration::from_millis(1_500)));
    let before = t.fakes.counts(fakes::QUICKBOOKS).refreshes;
    let asked_before = t.fakes.requests(TOKEN);
    let (env, tenant) = (t.world.env.clone(), t.world.tenant_id);
    let want = || {
        let env = env.clone();
        tokio::spawn(async move { tokens::token(&env, tenant, id, QUICKBOOKS).await })
    };
    let wanting: Vec<_> = (0..16).map(|_| want()).collect();
    let is_asked = async || t.fakes.requests(TOKEN) > asked_before;
    assert!(wait_until(Duration::from_secs(10), is_asked).await, "nobody asks for a token");
    let open = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'";
    assert_eq!(t.count(open).await, 0, "a transaction is open while the provider is asked");
    let mut versions = Vec::new();
    for wanted in wanting {
        versions.push(wanted.await.expect("a task").expect("a token").version);
    }
    assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
    let counts = t.fakes.counts(fakes::QUICKBOOKS);
    assert_eq!((counts.refreshes - before, counts.invalid_grants, counts.reuses), (1, 0, 0), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_later_than_its_lease_is_still_stored_and_nobody_asked_twice() {
    let t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    stale(&t).await;
    t.fakes.next(TOKEN, Manner::Delay(Duration::from_millis(1_800)));
    let timing = Timing { lease: Duration::from_millis(300), patience: Duration::from_millis(600) };
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let first = tokens::token_within(env, tenant, id, QUICKBOOKS, timing).await;
    assert!(
        matches!(first, Err(NoToken::Failed(_))),
        "an endpoint that never answers must not be asked for ever: {first:?}"
    );
    let patient = Timing { lease: Duration::from_millis(300), patience: Duration::from_secs(10) };
    let second = tokens::token_within(env, tenant, id, QUICKBOOKS, patient).await.expect("the late pair");
    let counts = t.fakes.counts(fakes::QUICKBOOKS);
    assert_eq!((counts.refreshes, counts.invalid_grants), (1, 0), "{counts:?}");
    assert!(second.version > 1);
}

/// F23.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_issuer_says_decides_between_reconnect_a_breaker_and_a_retry() {
    let t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    t.run().await;
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let want = async || tokens::token(env, tenant, id, QUICKBOOKS).await;

    stale(&t).await;
    t.fakes.next(TOKEN, Manner::Status(503));
    assert!(matches!(want().await, Err(NoToken::Failed(_))), "5xx");
    assert_eq!(t.source(id).await.status.as_str(), "active");

    // Our own fault: nobody is disconnected, and everybody stays away.
    t.fakes.reject_client(true);
    assert!(matches!(want().await, Err(NoToken::Wait(..))), "invalid_client");
    t.fakes.reject_client(false);
    assert_eq!(t.source(id).await.status.as_str(), "active");
    let asked = t.fakes.requests("/quickbooks");
    t.sync(id).await;
    t.run().await;
    assert_eq!(t.fakes.requests("/quickbooks"), asked, "the breaker is not open");
    env.clock.advance(TimeDelta::minutes(16));
    stale(&t).await;
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{:?}", t.jobs(id).await[0]);

    // The reply is lost: one more try with the same pair, and that one was spent.
    stale(&t).await;
    t.fakes.next(TOKEN, Manner::DropReply);
    assert!(matches!(want().await, Err(NoToken::Failed(_))), "no reply");
    assert_eq!(t.source(id).await.status.as_str(), "active");
    t.fakes.next(TOKEN, Manner::Status(503)); // which says nothing of the first one
    assert!(matches!(want().await, Err(NoToken::Failed(_))), "5xx");
    assert!(matches!(want().await, Err(NoToken::Reconnect)), "spent");
    assert_eq!(t.source(id).await.status_message.as_deref(), Some("refresh_outcome_unknown"));

    // Reconnected, then revoked by its owner.
    t.connect_over(QUICKBOOKS, domain::Transport::Rest, Some(id)).await.expect("reconnected");
    stale(&t).await;
    t.fakes.revoke(fakes::QUICKBOOKS);
    assert!(matches!(want().await, Err(NoToken::Reconnect)), "revoked");
    assert_eq!(t.source(id).await.status_message.as_deref(), Some("refresh_token_invalid: invalid_grant"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_lives_no_longer_than_the_skew_is_refreshed_once_and_used() {
    let t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    t.fakes.set_token_secs(fakes::QUICKBOOKS, 40);
    stale(&t).await;
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let before = t.fakes.counts(fakes::QUICKBOOKS).refreshes;
    for _ in 0..3 {
        tokens::token(env, tenant, id, QUICKBOOKS).await.expect("a token");
    }
    assert_eq!(t.fakes.counts(fakes::QUICKBOOKS).refreshes - before, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_comes_after_the_source_was_given_up_revives_it() {
    let t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    stale(&t).await;
    t.fakes.next(TOKEN, Manner::Delay(Duration::from_secs(2)));
    let (env, tenant, asked) = (&t.world.env, t.world.tenant_id, t.fakes.requests(TOKEN));
    let second = async {
        t.fakes.wait_for_requests(TOKEN, asked + 1).await;
        // As if the first one were silent: its lease has lapsed.
        let sql =
            "update connected_sources set refresh_until = now() - interval '1 second' where refresh_by is not null";
        sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("a lapsed lease");
        t.run().await; // the first sync wants a token too, and the pair is spent
        let (source, job) = (t.source(id).await, t.jobs(id).await.remove(0));
        assert_eq!(source.status_message.as_deref(), Some("refresh_outcome_unknown"));
        assert_eq!(job.status.as_str(), "failed");
    };
    let (first, ()) = tokio::join!(tokens::token(env, tenant, id, QUICKBOOKS), second);
    first.expect("the pair that came late");
    assert_eq!(t.source(id).await.status.as_str(), "active");
    assert_eq!(t.jobs(id).await[0].status.as_str(), "pending", "what had stopped does not go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_a_pair_that_was_replaced_meanwhile_asks_nobody_to_reconnect() {
    let t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    stale(&t).await;
    t.fakes.revoke(fakes::QUICKBOOKS);
    t.fakes.set_latency(TOKEN, Duration::from_millis(500));
    let (env, tenant, asked) = (&t.world.env, t.world.tenant_id, t.fakes.requests(TOKEN));
    let reconnected = async {
        t.fakes.wait_for_requests(TOKEN, asked + 1).await;
        let sql = "update connected_sources set token_version = token_version + 1 where provider = 'quickbooks'";
        sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("a newer pair");
    };
    let (refused, ()) = tokio::join!(tokens::token(env, tenant, id, QUICKBOOKS), reconnected);
    assert!(matches!(refused, Err(NoToken::Wait(..))), "{refused:?}");
    assert_eq!(t.source(id).await.status.as_str(), "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_are_read_say_nothing_of_our_client_and_a_refresh_does() {
    let t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let key = tokens::breaker(QUICKBOOKS);
    let is_closed = async || {
        let closed = store::gates::closed(&mut *t.world.conn().await, env.clock.sql(), &[&key]).await;
        !closed.expect("an answer").is_empty()
    };
    t.fakes.set_latency("/quickbooks", Duration::from_millis(300));
    let asked = t.fakes.requests("/quickbooks");
    let refused = async {
        t.fakes.wait_for_requests("/quickbooks", asked + 1).await;
        let (mut conn, wait) = (t.world.conn().await, Duration::from_secs(900));
        store::gates::close(&mut conn, env.clock.sql(), &key, wait, "invalid_client").await.expect("closed");
    };
    tokio::join!(t.run(), refused);
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed");
    assert!(is_closed().await, "a page opened it");
    stale(&t).await;
    let kept_away = tokens::token(env, tenant, id, QUICKBOOKS).await;
    assert!(matches!(kept_away, Err(NoToken::Wait(..))), "{kept_away:?}");
    env.clock.advance(TimeDelta::minutes(16));
    tokens::token(env, tenant, id, QUICKBOOKS).await.expect("a token");
    assert_eq!(
        t.count("select count(*) from tributary.gates where closed_until is not null").await,
        0,
        "a refresh did not"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_while_its_app_is_not_set_up_or_its_token_endpoint_asks_for_patience() {
    let mut t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    stale(&t).await;
    t.fakes.next(TOKEN, Manner::RateLimited { retry_after: fakes::RetryAfter::Seconds(30) });
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!(
        (job.status.as_str(), job.error_details[0]["kind"].as_str()),
        ("pending", Some("rate_limited")),
        "{job:?}"
    );

    let (with_app, env) = (t.world.env.providers.clone(), &mut t.world.env);
    let mut config = (*env.config).clone();
    config.providers.remove("QUICKBOOKS_CLIENT_ID");
    env.providers = engine::pull::Providers::from_config(&config, &env.http).expect("providers").into();
    env.clock.advance(TimeDelta::minutes(1));
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.error_count), ("pending", 0), "{job:?}");
    t.world.env.providers = with_app;
    t.world.env.clock.advance(TimeDelta::minutes(16));
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{:?}", t.jobs(id).await[0]);
}

/// F24.
#[tokio::test(flavor = "multi_thread")]
async fn replaced_pairs_stay_a_day_and_then_go() {
    let t = Sources::new().await;
    let id = t.connect(QUICKBOOKS).await;
    for _ in 0..3 {
        // However old a pair is when it is replaced.
        let sql = "update tributary.vault set created_at = created_at - interval '2 days'";
        sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("an old pair");
        stale(&t).await;
        tokens::token(&t.world.env, t.world.tenant_id, id, QUICKBOOKS).await.expect("a token");
    }
    let secrets = "select count(*) from tributary.vault where source_id is not null";
    assert_eq!(t.count(secrets).await, 8);
    let mut conn = t.world.conn().await;
    assert_eq!(store::tokens::collect(&mut conn, t.world.env.clock.sql()).await.expect("a count"), 0);
    let later = t.world.env.clock.now() + TimeDelta::hours(25);
    assert_eq!(store::tokens::collect(&mut conn, Some(later)).await.expect("a count"), 6);
    assert_eq!(t.count(secrets).await, 2, "the pair in use went too");
}

/// S21.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_good_once_for_its_session_tenant_and_provider() {
    use engine::pull::connect::{self, ConnectError};
    let t = Sources::new().await;
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let start = async || {
        let url =
            connect::authorize(env, tenant, b"mine", HUBSPOT, None, domain::Transport::Rest).await.expect("a URL");
        assert!(url.contains("code_challenge_method=S256"), "{url}");
        t.consent(HUBSPOT, &url).await
    };
    let unknown = |result: Result<_, ConnectError>| matches!(result, Err(ConnectError::UnknownState));
    let other = t.world.other_tenant("other").await;

    let returned = start().await;
    assert!(unknown(connect::returned(env, tenant, b"another", HUBSPOT, &returned).await), "another session");
    assert!(unknown(connect::returned(env, tenant, b"mine", HUBSPOT, &returned).await), "used up by that");
    let returned = start().await;
    assert!(unknown(connect::returned(env, other, b"mine", HUBSPOT, &returned).await), "another tenant");
    let returned = start().await;
    assert!(unknown(connect::returned(env, tenant, b"mine", QUICKBOOKS, &returned).await), "another provider");
    let mut returned = start().await;
    returned.state.push('x');
    assert!(unknown(connect::returned(env, tenant, b"mine", HUBSPOT, &returned).await), "another state");
    let returned = start().await;
    connect::returned(env, tenant, b"mine", HUBSPOT, &returned).await.expect("connected");
    assert!(unknown(connect::returned(env, tenant, b"mine", HUBSPOT, &returned).await), "twice");
    t.fakes.deny_next();
    let returned = start().await;
    let denied = connect::returned(env, tenant, b"mine", HUBSPOT, &returned).await;
    assert!(matches!(denied, Err(ConnectError::Denied(..))), "{denied:?}");
    assert_eq!(t.count("select count(*) from connected_sources where provider = 'hubspot'").await, 1);
    assert_eq!(
        t.count("select count(*) from tributary.oauth_states").await,
        1,
        "but for the one that nobody came back with"
    );
    // Nothing of a token or a code is readable in the database.
    let dump: Vec<String> =
        sqlx::query_scalar("select v::text from tributary.vault v union all select s::text from connected_sources s")
            .fetch_all(&mut *t.world.conn().await)
            .await
            .expect("rows");
    let code = returned.code.unwrap_or_else(|| "nothing".into());
    assert!(dump.iter().all(|row| !row.contains(&code)));
}

/// F24.
/// A process that sleeps in the middle of storing a new pair: the server ends its session, and the pair in its hands is the only good one.
#[tokio::test(flavor = "multi_thread")]
async fn a_pair_whose_transaction_idled_too_long_is_stored_after_all() {
    use rustix::process::Signal;
    use testkit::process::is_stopped;

    let database = testkit::cluster::cloned();
    let t = Sources::with(database, domain::Clock::System, fakes::Fakes::with_fixtures().await, &[]).await;
    let id = t.connect(QUICKBOOKS).await;
    stale(&t).await;
    let before = t.fakes.counts(fakes::QUICKBOOKS).refreshes;
    let mut process =
        refresher(&t, id, 1, 45_000).env("TRIBUTARY_CRASH", "token.in_vault:stop").spawn().expect("a process");
    let pid = process.id();
    assert!(wait_until(Duration::from_secs(20), async || is_stopped(pid)).await, "it never came to the vault");
    let idle =
        "select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'";
    assert_eq!(t.count(idle).await, 1);
    let is_ended = wait_until(Duration::from_secs(20), async || t.count(idle).await == 0).await;
    testkit::cluster::kill(pid, Signal::CONT);
    assert!(is_ended, "the server let it idle");
    let version = format!("select token_version from connected_sources where id = '{id}'");
    let is_stored = wait_until(Duration::from_secs(30), async || {
        t.count(&version).await > 1 || t.source(id).await.status.as_str() != "active"
    });
    assert!(is_stored.await, "no pair was stored");
    drop(process.stdin.take());
    process.wait().expect("its end");
    let counts = t.fakes.counts(fakes::QUICKBOOKS);
    assert_eq!(t.source(id).await.status.as_str(), "active", "F24: the only good pair was thrown away; {counts:?}");
    assert_eq!((counts.refreshes - before, counts.invalid_grants, counts.reuses), (1, 0, 0), "{counts:?}");
}

/// A process with tasks that ask for this source's token all the time.
fn refresher(t: &Sources, id: domain::SourceId, tasks: u32, lease_ms: u64) -> std::process::Command {
    let mut command = crate::programs::refresher();
    command
        .env("REFRESHER_FOR", format!("{} {id}", t.world.tenant_id))
        .env("REFRESHER_TASKS", tasks.to_string())
        .env("REFRESHER_LEASE_MS", lease_ms.to_string())
        .env("DATABASE_URL", &t.world.database.url)
        .env("MASTER_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
        .env("BLOB_URL", testkit::cluster::blob_url())
        .envs(testkit::sources::settings(&t.fakes))
        .stdin(std::process::Stdio::piped());
    command
}

/// F22: several processes with several tasks each, one rotating token, and replies that come later than their lease.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_want_one_token_refresh_it_once_an_expiry() {
    let expiries: i64 = if testkit::is_slow() { 1_000 } else { 200 };
    let lease_ms = 1_000;
    let database = testkit::cluster::cloned();
    let t = Sources::with(database, domain::Clock::System, fakes::Fakes::with_fixtures().await, &[]).await;
    let id = t.connect(QUICKBOOKS).await;
    let before = t.fakes.counts(fakes::QUICKBOOKS).refreshes;
    for nth in (1..=u64::try_from(expiries).expect("a count")).step_by(100) {
        t.fakes.nth(TOKEN, nth + 50, Manner::Delay(Duration::from_millis(lease_ms * 3 / 2)));
    }
    let mut processes: Vec<_> = (0..8).map(|_| refresher(&t, id, 8, lease_ms).spawn().expect("a process")).collect();
    let mut conn = t.world.conn().await;
    let version = "select token_version from connected_sources where id = $1";
    for nth in 0..expiries {
        let seen: i64 = sqlx::query_scalar(version).bind(id.0).fetch_one(&mut *conn).await.expect("a version");
        let sql = "update connected_sources set token_expires_at = null where id = $1";
        sqlx::query(sql).bind(id.0).execute(&mut *conn).await.expect("an expiry");
        let is_refreshed = wait_until(Duration::from_secs(60), async || {
            let now: i64 = sqlx::query_scalar(version).bind(id.0).fetch_one(&mut *conn).await.expect("a version");
            now > seen
        });
        assert!(is_refreshed.await, "expiry {nth}: nobody refreshed; {:?}", t.source(id).await);
    }
    for process in &mut processes {
        drop(process.stdin.take());
        process.wait().expect("its end");
    }
    let counts = t.fakes.counts(fakes::QUICKBOOKS);
    let accepted = i64::try_from(counts.refreshes - before).expect("a count");
    println!("{expiries} expiries, {accepted} accepted refreshes, {} invalid_grant", counts.invalid_grants);
    assert_eq!((accepted, counts.invalid_grants, counts.reuses), (expiries, 0, 0), "{counts:?}");
    assert_eq!(t.source(id).await.status.as_str(), "active");
}
