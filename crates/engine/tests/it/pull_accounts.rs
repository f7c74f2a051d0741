//! Accounts: connected, connected again over another transport, refused, and forgotten without a trace.

use connectors::pull::ALL;
use domain::{Clock, Transport};
use engine::pull::connect;
use fakes::Fakes;
use serde_json::Value;
use testkit::sources::{DRIVE, HUBSPOT, QUICKBOOKS};
use testkit::{Sources, cluster};

use crate::pull::expected;

/// S29.
#[tokio::test(flavor = "multi_thread")]
async fn forgetting_leaves_no_derived_row() {
    let t = Sources::new().await;
    let (id, other) = (t.connect(HUBSPOT).await, t.connect(QUICKBOOKS).await);
    t.run().await;
    let kept = t.documents(other).await;
    let counted =
        connect::forget(&t.world.env, t.world.tenant_id, id, "test").await.expect("an answer").expect("a source");
    assert!(counted.documents > 0 && counted.chunks > 0 && counted.clients > 0, "{counted:?}");
    let secrets = format!("select count(*) from tributary.vault where source_id = '{id}'");
    assert_eq!(t.count(&secrets).await, 0, "its tokens stay until it is forgotten");
    t.run().await;
    let tables: Vec<(String, String)> = sqlx::query_as(
        "select n.nspname::text, c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname in ('public', 'tributary', 'memory', 'pgmq') and c.relkind in ('r', 'p')",
    )
    .fetch_all(&mut *t.world.conn().await)
    .await
    .expect("tables");
    for (schema, table) in tables {
        let naming = format!("select count(*) from {schema}.\"{table}\" t where t::text like '%{id}%'");
        assert_eq!(t.count(&naming).await, 0, "{schema}.{table} still names the source");
    }
    assert_eq!(t.documents(other).await, kept, "another source was touched");
    let told: (String, Value) = sqlx::query_as("select what, removed from forgotten where done_at is not null")
        .fetch_one(&mut *t.world.conn().await)
        .await
        .expect("a line");
    assert_eq!((told.0.as_str(), told.1["documents"].as_i64()), ("HubSpot", Some(counted.documents)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_of_a_source_names_no_person_and_goes_with_it() {
    let t = Sources::new().await;
    let id = t.connect(DRIVE).await;
    t.run().await;
    assert!(t.source(id).await.name.contains('@'), "a Drive is called by its owner's address");
    let caller = domain::Caller::local("test", t.world.tenant_id, true);
    for sql in [
        "update connected_sources set status = 'provider_error' where provider = 'google_drive'",
        "update connected_sources set status = 'active' where provider = 'google_drive'; update sync_jobs set status = 'failed'",
    ] {
        sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("a trouble");
        let findings = engine::health::overview(&t.world.env, &caller).await.expect("an overview").findings;
        let of_it = |kind: &str| ["source_error", "sync_failed"].contains(&kind);
        assert_eq!(findings.iter().filter(|finding| of_it(finding.kind)).count(), 1, "{findings:?}");
        assert!(findings.iter().all(|finding| !finding.what.contains('@')), "{findings:?}");
        let mut tx = t.world.env.db.begin().await.expect("a transaction");
        store::alerts::reconcile(&mut tx, None, t.world.tenant_id, &findings).await.expect("alerts");
        tx.commit().await.expect("a commit");
    }
    let alerts = "select count(*) from tributary.alerts where kind in ('source_error', 'sync_failed')";
    assert_eq!(t.count(alerts).await, 2);
    connect::forget(&t.world.env, t.world.tenant_id, id, "test").await.expect("an answer");
    t.run().await;
    assert_eq!(t.count(alerts).await, 0, "alerts outlived their source");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_old_era_is_read_as_well() {
    let fakes = Fakes::with_fixtures().await;
    let url = format!("{}/mcp-legacy/hubspot", fakes.url());
    let t = Sources::with(cluster::cloned(), Clock::System, fakes, &["--hubspot-mcp-url", &url]).await;
    let id = t.connect_over(HUBSPOT, Transport::Mcp, None).await.expect("a source");
    t.run().await;
    assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{:?}", t.jobs(id).await[0]);
    assert_eq!(t.documents(id).await, expected(&t, HUBSPOT));
    assert!(t.fakes.requests("/mcp-legacy/hubspot") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn connected_again_through_mcp_it_is_read_so_and_a_reconnect_leaves_it() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    let before = t.documents(id).await;
    let sql = "update connected_sources set scopes = '{}'";
    sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("no scopes");
    assert_eq!(t.connect_over(HUBSPOT, Transport::Mcp, None).await.expect("the same source"), id);
    t.run().await;
    assert!(t.fakes.requests("/mcp/hubspot/tools/call") > 0, "it is still read by REST");
    assert_eq!((t.source(id).await.transport, t.documents(id).await), (Transport::Mcp, before));
    let scopes = "select count(*) from connected_sources where provider = 'hubspot' and scopes <> '{}'";
    assert_eq!(t.count(scopes).await, 1, "what was allowed is not written down");

    t.connect_over(HUBSPOT, Transport::Rest, Some(id)).await.expect("reconnected");
    assert_eq!(t.source(id).await.transport, Transport::Mcp, "reconnecting changed how it is read");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_connected_is_refused_before_anything_is_stored() {
    use connect::ConnectError;
    let mut t = Sources::new().await;
    let env = &mut t.world.env;
    let mut config = (*env.config).clone();
    config.providers.remove("QUICKBOOKS_MCP_URL");
    env.providers = engine::pull::Providers::from_config(&config, &env.http).expect("providers").into();
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let over_mcp = t.connect_over(QUICKBOOKS, Transport::Mcp, None).await;
    assert!(matches!(over_mcp, Err(ConnectError::NotRead(_))), "{over_mcp:?}");
    let key = domain::Secret::new("a key that is none");
    let with_key = connect::with_key(env, tenant, HUBSPOT, &key, None, Transport::Rest).await;
    assert!(matches!(with_key, Err(ConnectError::Refused(_))), "{with_key:?}");
    assert_eq!(t.count("select count(*) from connected_sources where account is not null").await, 0);

    // One that was made before, or whose server was taken away, says why it is not read.
    let id = t.connect(QUICKBOOKS).await;
    let sql = "update connected_sources set transport = 'mcp' where provider = 'quickbooks'";
    sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("another transport");
    t.run().await;
    let job = t.jobs(id).await.remove(0);
    assert_eq!(job.status.as_str(), "failed");
    assert!(
        job.error_details[0]["what"].as_str().is_some_and(|what| what.contains("nothing here reads it")),
        "{job:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_forgotten_is_neither_reconnected_nor_forgotten_twice() {
    let t = Sources::new().await;
    let id = t.connect(HUBSPOT).await;
    t.run().await;
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    for _ in 0..2 {
        assert!(connect::forget(env, tenant, id, "test").await.expect("an answer").is_some());
    }
    assert_eq!(t.count("select count(*) from forgotten").await, 1, "one source, two lines");
    let again = t.connect_over(HUBSPOT, Transport::Rest, Some(id)).await;
    assert!(matches!(again, Err(connect::ConnectError::Forgotten)), "{again:?}");
    let other = t.connect(HUBSPOT).await;
    assert_ne!(other, id, "what is being forgotten came back");
    t.run().await;
    assert_eq!(t.count("select count(*) from connected_sources where provider = 'hubspot'").await, 1);
    assert_eq!(t.documents(other).await, expected(&t, HUBSPOT));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_fixtures_switched_on_no_provider_is_asked() {
    let fakes = Fakes::start().await;
    let t = Sources::with(cluster::cloned(), Clock::System, fakes, &["--integrations-use-fixtures", "true"]).await;
    for provider in ALL.iter().copied() {
        let id = connect::with_fixtures(&t.world.env, t.world.tenant_id, provider).await.expect("a source");
        t.run().await;
        assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{provider}");
        assert!(!t.documents(id).await.is_empty(), "{provider}");
    }
    assert!(t.fakes.ledger().is_empty(), "{:?}", t.fakes.ledger());
}
