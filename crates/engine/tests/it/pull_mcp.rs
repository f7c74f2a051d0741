//! List C over MCP, and what no transport may fall for: refusals that are words in a tool's result, tokens that are not good, packed
//! answers, TLS that is none.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use domain::{Clock, Secret, SourceId, Transport};
use engine::Config;
use engine::pull::{Providers, connect};
use fakes::{Fakes, Manner};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use testkit::sources::HUBSPOT;
use testkit::{Sources, cluster};

const ERAS: [&str; 2] = ["mcp", "mcp-legacy"];
const LISTS: &str = "/hubspot/crm";

fn calls(era: &str) -> String {
    format!("/{era}/hubspot/tools/call")
}

/// The fixtures, read over an MCP server of this version. The clock stands until the test moves it.
async fn over(era: &str) -> (Sources, SourceId) {
    let fakes = Fakes::with_fixtures().await;
    let url = format!("{}/{era}/hubspot", fakes.url());
    let clock = Clock::fixed(Utc::now() + TimeDelta::hours(1));
    let t = Sources::with(cluster::cloned(), clock, fakes, &["--hubspot-mcp-url", &url]).await;
    let id = t.connect_over(HUBSPOT, Transport::Mcp, None).await.expect("a source");
    (t, id)
}

/// The names of HubSpot's records, as we call them.
fn expected(t: &Sources) -> Vec<String> {
    let crm = t.fakes.hubspot();
    let named = |kind: &str, name: &str| crm.ids(kind).iter().map(|id| format!("{name}:{id}")).collect::<Vec<_>>();
    let mut all = [named("contacts", "contact"), named("companies", "company"), named("deals", "deal")].concat();
    all.sort();
    all
}

/// Checks that the newest job completed with this many failed attempts, and that nothing is missing.
async fn assert_whole(t: &Sources, id: SourceId, attempts: i32, why: &str) {
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.error_count), ("completed", attempts), "{why}: {job:?}");
    assert_eq!(t.documents(id).await, expected(t), "{why}");
    assert_eq!(t.source(id).await.status.as_str(), "active", "{why}");
}

/// Checks that the newest job waits after this many attempts. Returns the kind of trouble and its words.
async fn trouble(t: &Sources, id: SourceId, attempts: i32) -> (String, String) {
    let job = t.jobs(id).await.remove(0);
    assert_eq!((job.status.as_str(), job.error_count), ("pending", attempts), "{job:?}");
    let word = |name: &str| job.error_details[0][name].as_str().unwrap_or_default().to_owned();
    (word("kind"), word("what"))
}

/// The same sources with other settings.
fn lead(t: &mut Sources, change: impl FnOnce(&mut Config)) {
    let env = &mut t.world.env;
    let mut config = (*env.config).clone();
    change(&mut config);
    env.providers = Arc::new(Providers::from_config(&config, &env.http).expect("providers"));
    env.config = Arc::new(config);
}

async fn an_hour_later(t: &Sources) {
    t.world.env.clock.advance(TimeDelta::minutes(61));
    t.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_quotes_a_429_is_waited_for_and_costs_no_attempt() {
    for era in ERAS {
        let (t, id) = over(era).await;
        t.fakes.nth(&calls(era), 2, Manner::ToolError(429));
        t.run().await;
        let (kind, what) = trouble(&t, id, 0).await;
        assert_eq!(kind, "rate_limited", "{era}");
        assert_eq!(what, "HubSpot's MCP server asked us to wait 10 s", "{era}");
        assert_eq!(t.jobs(id).await[0].items_failed, 0, "{era}");

        let asked = t.fakes.requests(&calls(era));
        t.world.env.clock.advance(TimeDelta::seconds(9));
        t.run().await;
        assert_eq!(t.fakes.requests(&calls(era)), asked, "{era}: asked while it was told to wait");
        t.world.env.clock.advance(TimeDelta::seconds(3));
        t.run().await;
        assert_whole(&t, id, 0, era).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_quotes_a_401_has_the_token_refreshed_and_goes_on() {
    for era in ERAS {
        let (t, id) = over(era).await;
        t.world.env.clock.advance(TimeDelta::minutes(6)); // a pair that was good for a while
        t.fakes.nth(&calls(era), 2, Manner::ToolError(401));
        t.run().await;
        assert_eq!(trouble(&t, id, 0).await.0, "unauthorized", "{era}");
        assert_eq!(t.source(id).await.status.as_str(), "active", "{era}");
        assert_eq!(t.fakes.counts(fakes::HUBSPOT).refreshes, 0, "{era}: there is one way to refresh, at a claim");

        t.world.env.clock.advance(TimeDelta::seconds(2));
        t.run().await;
        assert_whole(&t, id, 0, era).await;
        assert_eq!(t.fakes.counts(fakes::HUBSPOT).refreshes, 1, "{era}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_quotes_a_401_of_a_fresh_token_asks_to_be_reconnected() {
    for era in ERAS {
        let (t, id) = over(era).await;
        t.fakes.nth(&calls(era), 2, Manner::ToolError(401));
        t.run().await;
        let (source, job) = (t.source(id).await, t.jobs(id).await.remove(0));
        let said = (source.status.as_str(), source.status_message.as_deref());
        assert_eq!(said, ("token_refresh_failed", Some("unauthorized_after_refresh")), "{era}");
        let ended = (job.status.as_str(), job.error_message.as_deref());
        assert_eq!(ended, ("failed", Some("unauthorized_after_refresh")), "{era}: {job:?}");
        assert!(job.checkpoint_data["place"].is_object(), "{era}: the place is lost: {job:?}");
        assert_eq!(t.count("select count(*) from pgmq.q_ingestion_queue").await, 0, "{era}: it was requeued");
        assert_eq!(t.fakes.counts(fakes::HUBSPOT).refreshes, 0, "{era}");

        t.connect_over(HUBSPOT, Transport::Mcp, Some(id)).await.expect("reconnected");
        t.run().await;
        assert_whole(&t, id, 0, era).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_quotes_a_403_says_what_is_missing_and_is_not_tried_again() {
    for era in ERAS {
        let (t, id) = over(era).await;
        t.fakes.nth(&calls(era), 2, Manner::ToolError(403));
        t.run().await;
        let (source, job) = (t.source(id).await, t.jobs(id).await.remove(0));
        let said = (source.status.as_str(), source.status_message.as_deref());
        assert_eq!(said, ("provider_error", Some("forbidden: MISSING_SCOPES")), "{era}");
        let ended = (job.status.as_str(), job.error_message.as_deref());
        assert_eq!(ended, ("failed", Some("forbidden: MISSING_SCOPES")), "{era}: {job:?}");
        assert_eq!(
            job.error_details[0]["what"], "HubSpot's MCP server refused what we asked for (MISSING_SCOPES)",
            "{era}"
        );
        assert_eq!(t.count("select count(*) from pgmq.a_ingestion_queue").await, 1, "{era}");
        let asked = t.fakes.requests(&calls(era));
        an_hour_later(&t).await;
        assert_eq!(t.fakes.requests(&calls(era)), asked, "{era}: asked again although nothing changed");

        // Somebody has given the scope since.
        t.sync(id).await;
        t.run().await;
        assert_whole(&t, id, 0, era).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_quotes_a_5xx_costs_an_attempt_and_heals() {
    for (era, status) in [("mcp", 500), ("mcp", 502), ("mcp", 503), ("mcp-legacy", 504)] {
        let (t, id) = over(era).await;
        t.fakes.nth(&calls(era), 2, Manner::ToolError(status));
        t.run().await;
        let (kind, what) = trouble(&t, id, 1).await;
        assert_eq!(
            (kind.as_str(), what),
            ("provider", format!("HubSpot's MCP server quotes an error {status}")),
            "{era}"
        );
        assert_eq!(t.source(id).await.status.as_str(), "active");
        an_hour_later(&t).await;
        assert_whole(&t, id, 1, era).await;
    }
}

/// Answers of a server, or of a proxy in front of it, that are no MCP.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_mcp_costs_an_attempt_and_the_next_one_heals_it() {
    for manner in [
        Manner::Garbage,
        Manner::Html,
        Manner::WrongJson,
        Manner::Empty200,
        Manner::Truncated,
        Manner::CutJson,
        Manner::InvalidUtf8,
        Manner::Endless,
        Manner::Reset,
        Manner::DropReply,
        Manner::Status(500),
        Manner::Status(503),
    ] {
        let (t, id) = over("mcp").await;
        t.fakes.nth(&calls("mcp"), 2, manner.clone());
        t.run().await;
        let (_, what) = trouble(&t, id, 1).await;
        assert!(what.contains("HubSpot's MCP server"), "{manner:?} is told as {what:?}");
        an_hour_later(&t).await;
        assert_whole(&t, id, 1, &format!("{manner:?}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_token_that_a_tool_refuses_starts_the_pass_anew() {
    for era in ERAS {
        let (t, id) = over(era).await;
        t.fakes.hubspot().fill_contacts(250);
        t.fakes.next(&calls(era), Manner::LostToken); // waits for a call with a token
        t.run().await;
        assert_whole(&t, id, 0, era).await;
        assert!(t.jobs(id).await[0].note.is_some(), "{era}: nobody was told");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_no_longer_has_is_withdrawn_over_mcp_too() {
    for era in ERAS {
        let (t, id) = over(era).await;
        t.run().await;
        assert_whole(&t, id, 0, era).await;
        let looks = format!("{}/hubspot-batch-read-objects", calls(era));
        assert_eq!(t.fakes.requests(&looks), 0, "{era}: a first pass looks for nothing");

        let crm = t.fakes.hubspot();
        let (purged, archived) = (crm.ids("contacts").remove(0), crm.ids("deals").remove(0));
        crm.purge("contacts", &purged);
        crm.archive("deals", &archived);
        t.sync(id).await;
        t.run().await;
        let job = t.jobs(id).await.remove(0);
        assert_eq!((job.kind.as_str(), job.status.as_str(), job.n_deleted), ("full", "completed", 2), "{era}: {job:?}");
        assert_eq!(t.documents(id).await, expected(&t), "{era}");
        assert_eq!(t.fakes.requests(&looks), 2, "{era}: asked by name, each kind once");
        assert!(t.client(id, &format!("contact:{purged}")).await.is_none(), "{era}: a client outlived its record");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_server_refuses_is_refreshed_and_no_other_era_is_tried_with_it() {
    for era in ERAS {
        let (t, id) = over(era).await;
        t.world.env.clock.advance(TimeDelta::minutes(6));
        t.fakes.expire_access(fakes::HUBSPOT);
        t.run().await;
        assert_eq!(trouble(&t, id, 0).await.0, "unauthorized", "{era}");
        assert_eq!(t.fakes.requests(&format!("/{era}/hubspot")), 1, "{era}: a 401 was taken for something else");

        t.world.env.clock.advance(TimeDelta::seconds(2));
        t.run().await;
        assert_whole(&t, id, 0, era).await;
        assert_eq!(t.fakes.counts(fakes::HUBSPOT).refreshes, 1, "{era}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_or_key_that_stays_wrong_asks_to_be_reconnected_and_calls_nothing() {
    for era in ERAS {
        let (t, id) = over(era).await;
        t.fakes.revoke(fakes::HUBSPOT);
        t.run().await;
        let (source, job) = (t.source(id).await, t.jobs(id).await.remove(0));
        let said = (source.status.as_str(), source.status_message.as_deref(), job.status.as_str());
        assert_eq!(said, ("token_refresh_failed", Some("unauthorized_after_refresh"), "failed"), "{era}");
        assert_eq!(t.fakes.requests(&calls(era)), 0, "{era}");
        let asked = t.fakes.requests(&format!("/{era}"));
        an_hour_later(&t).await;
        assert_eq!(t.fakes.requests(&format!("/{era}")), asked, "{era}: a source that has to be reconnected was asked");
    }

    let t = Sources::new().await;
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let key = Secret::new(t.fakes.hubspot_private_app_token());
    let id = connect::with_key(env, tenant, HUBSPOT, &key, None, Transport::Mcp).await.expect("a source");
    t.fakes.revoke(fakes::HUBSPOT);
    t.run().await;
    let source = t.source(id).await;
    let said = (source.status.as_str(), source.status_message.as_deref());
    assert_eq!(said, ("token_refresh_failed", Some("key_refused")));
    assert_eq!(t.fakes.counts(fakes::HUBSPOT).token_requests, 0, "a key was refreshed");
}

/// F18.
#[tokio::test(flavor = "multi_thread")]
async fn a_packed_bomb_is_not_unpacked_and_frees_its_slot() {
    let began = Instant::now();
    let t = Sources::new().await;
    t.fakes.nth(LISTS, 3, Manner::Bomb);
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    let (kind, what) = trouble(&t, id, 1).await;
    assert_eq!((kind.as_str(), what.as_str()), ("unreadable", "HubSpot gave a packed answer, which nobody asked for"));
    an_hour_later(&t).await;
    assert_whole(&t, id, 1, "over REST").await;

    for era in ERAS {
        let (t, id) = over(era).await;
        t.fakes.nth(&calls(era), 2, Manner::Bomb);
        t.run().await;
        let (kind, what) = trouble(&t, id, 1).await;
        assert_eq!(
            (kind.as_str(), what.as_str()),
            ("unreadable", "HubSpot's MCP server answered 200 and no MCP"),
            "{era}"
        );
        an_hour_later(&t).await;
        assert_whole(&t, id, 1, era).await;
    }

    // In the place of a token: its outcome is unknown, and the same refresh token is tried once more.
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    let stale = "update connected_sources set token_expires_at = $1 where id = $2";
    let now = t.world.env.clock.now();
    sqlx::query(stale).bind(now).bind(id.0).execute(&mut *t.world.conn().await).await.expect("a stale token");
    t.fakes.next("/oauth/hubspot/token", Manner::Bomb);
    t.run().await;
    let (kind, what) = trouble(&t, id, 1).await;
    assert!(kind == "token" && what.contains("gave an answer without an end"), "{kind}: {what}");
    assert_eq!(t.source(id).await.status.as_str(), "active");
    an_hour_later(&t).await;
    assert_whole(&t, id, 1, "at the token endpoint").await;
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
}

/// Listens with TLS and an untrusted certificate. Counts the connections, and those that sent anything through it.
fn self_signed() -> (u16, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from(bytes(CERTIFICATE))],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(bytes(KEY))),
        )
        .expect("a certificate and its key");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (came, heard) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (n_came, n_heard) = (came.clone(), heard.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            n_came.fetch_add(1, SeqCst);
            let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
            let Ok(mut tls) = rustls::ServerConnection::new(config.clone()) else { continue };
            let mut said = [0; 1_024];
            if rustls::Stream::new(&mut tls, &mut stream).read(&mut said).is_ok_and(|n| n > 0) {
                n_heard.fetch_add(1, SeqCst);
            }
        }
    });
    (port, came, heard)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|c| c.to_digit(16)).filter_map(|digit| u8::try_from(digit).ok()).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4) | pair[1]).collect()
}

/// Of 127.0.0.1, until 2126; made for this test by `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1`.
const CERTIFICATE: &str = "
    3082019030820136a00302010202143b0d489aaa0ab55a279fb00959e068c6a5bd7813300a06082a8648ce3d04030230143112301006035504030c09
    3132372e302e302e313020170d3236313131363030323931325a180f32313236313032333030323931325a30143112301006035504030c093132372e
    302e302e313059301306072a8648ce3d020106082a8648ce3d03010703420004832bd35bdbd6c084ed8c27000d77f26d50335d2c9d9ccf7c12082b09
    eb700ca267a63c75391ca25f3fa8ed9bcb3cbefa3a43489f6bc16245d59aec1001b54387a3643062301d0603551d0e0416041467242b2813622270f6
    accd21e6b7b70a9923135f301f0603551d2304183016801467242b2813622270f6accd21e6b7b70a9923135f300f0603551d130101ff040530030101
    ff300f0603551d110408300687047f000001300a06082a8648ce3d040302034800304502203696c20c336c337870c3e84903d240c63c46273461bd53
    47875392c250eecb8b022100f1dae94cdd50366b1779772179c224c157ae304d60d9e4f962cea4c47b06d6bc";
const KEY: &str = "
    308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b02010104202f268cc03a50ee7dd81ca2de30c0c6ee4fc8f63fe1f7444f
    175f01eb9a247effa14403420004832bd35bdbd6c084ed8c27000d77f26d50335d2c9d9ccf7c12082b09eb700ca267a63c75391ca25f3fa8ed9bcb3c
    befa3a43489f6bc16245d59aec1001b54387";

/// F17.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_tls_is_none_is_not_spoken_to_and_passes() {
    let (port, came, heard) = self_signed();
    for is_signed in [false, true] {
        // Over REST, at the token endpoint, and over MCP.
        for transport in [Transport::Rest, Transport::Mcp] {
            let mut t = Sources::new().await;
            let plain = t.fakes.url().to_owned();
            let base =
                if is_signed { format!("https://127.0.0.1:{port}") } else { plain.replacen("http://", "https://", 1) };
            let id = t.connect_over(HUBSPOT, transport, None).await.expect("a source");
            let (asked, reached) = (t.fakes.ledger().len(), came.load(SeqCst));
            lead(&mut t, |config| {
                config.providers.set("HUBSPOT_API_URL", format!("{base}/hubspot"));
                config.providers.set("HUBSPOT_MCP_URL", format!("{base}/mcp/hubspot"));
            });
            t.run().await;
            let (kind, what) = trouble(&t, id, 1).await;
            let who = if transport == Transport::Mcp { "HubSpot's MCP server" } else { "HubSpot" };
            assert!(what.starts_with(&format!("{who} could not be reached")), "{transport:?}: {kind}: {what}");
            assert_eq!(kind, "provider");
            assert_eq!(t.source(id).await.status.as_str(), "active");
            assert_eq!(t.fakes.ledger().len(), asked, "somebody was asked in the clear");
            assert_eq!(
                came.load(SeqCst) > reached,
                is_signed,
                "{transport:?}: nobody came to the server that is no good"
            );

            lead(&mut t, |config| {
                config.providers.set("HUBSPOT_API_URL", format!("{plain}/hubspot"));
                config.providers.set("HUBSPOT_MCP_URL", format!("{plain}/mcp/hubspot"));
            });
            an_hour_later(&t).await;
            assert_whole(&t, id, 1, &format!("{transport:?}, self-signed: {is_signed}")).await;
        }

        let mut t = Sources::new().await;
        let plain = t.fakes.url().to_owned();
        let base =
            if is_signed { format!("https://127.0.0.1:{port}") } else { plain.replacen("http://", "https://", 1) };
        let id = t.connect(HUBSPOT).await;
        let stale = "update connected_sources set token_expires_at = $1 where id = $2";
        let now = t.world.env.clock.now();
        sqlx::query(stale).bind(now).bind(id.0).execute(&mut *t.world.conn().await).await.expect("a stale token");
        let version = format!("select token_version from connected_sources where id = '{id}'");
        let before = t.count(&version).await;
        lead(&mut t, |config| config.providers.set("HUBSPOT_TOKEN_URL", format!("{base}/oauth/hubspot/token")));
        t.run().await;
        let (kind, what) = trouble(&t, id, 1).await;
        assert!(kind == "token" && what.contains("HubSpot could not be reached"), "{kind}: {what}");
        assert_eq!((t.source(id).await.status.as_str(), t.count(&version).await), ("active", before));
        lead(&mut t, |config| config.providers.set("HUBSPOT_TOKEN_URL", format!("{plain}/oauth/hubspot/token")));
        an_hour_later(&t).await;
        assert_whole(&t, id, 1, "at the token endpoint").await;
    }
    assert_eq!(heard.load(SeqCst), 0, "something was said to a server that nobody vouches for");
}

/// In real time, so only with `./test --slow`; the quick one is beside the connector.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_mcp_has_a_minute_and_frees_its_slot() {
    if !testkit::is_slow() {
        return;
    }
    for manner in [Manner::Delay(Duration::from_secs(300)), Manner::Slow { per_byte: Duration::from_secs(1) }] {
        let (t, id) = over("mcp").await;
        t.fakes.nth(&calls("mcp"), 2, manner.clone());
        let began = Instant::now();
        t.run().await;
        let took = began.elapsed();
        assert!((Duration::from_secs(50)..Duration::from_secs(75)).contains(&took), "{manner:?} took {took:?}");
        let (kind, what) = trouble(&t, id, 1).await;
        assert_eq!(
            (kind.as_str(), what.as_str()),
            ("provider", "HubSpot's MCP server did not answer in time"),
            "{manner:?}"
        );
        an_hour_later(&t).await;
        assert_whole(&t, id, 1, &format!("{manner:?}")).await;
    }
}
