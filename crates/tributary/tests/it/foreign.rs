//! Another tenant's things, asked for at every route there is and with every kind of credential of somebody else's: nothing is shown, nothing
//! changes.

pub mod raid;

use domain::{Scope, Secret};
use serde_json::json;
use store::keys;

use raid::{APART, Raid, Stranger};

/// S17.
#[tokio::test(flavor = "multi_thread")]
async fn every_route_shows_and_changes_nothing_of_another_tenants_whatever_key_is_shown() {
    let raid = Raid::new().await;
    let elsewhere = raid.office.t.world.other_tenant("elsewhere").await;
    let strangers = raid.strangers(elsewhere).await;
    let before = raid.their_rows().await;
    let (mut asked, mut refused, mut wrong) = (0, 0, Vec::new());
    for (method, route) in raid.routes() {
        let is_named = route.contains("id}");
        for path in raid.filled(&route) {
            for who in &strangers {
                let body = raid.body(&method, &route);
                let (status, answer) = raid.ask(who, &method, &path, body).await;
                let what = format!("{} at {method} {path}: {status}", who.name());
                if let Some(word) = raid.leaked(&answer, &path) {
                    wrong.push(format!("{what}: shows {word:?}"));
                }
                // A form that finds nothing leads to a page that says so. It needs the token of a session, which a key has not.
                let is_form = !path.starts_with("/api/") && method == "POST";
                let expected: &[u16] = match who {
                    Stranger::Key(..) if is_form => &[403, 404],
                    Stranger::Session { .. } if is_form => &[303, 404],
                    _ => &[404],
                };
                if status >= 500 || (is_named && who.may_everything() && !expected.contains(&status)) {
                    let begins: String = answer.chars().take(200).collect();
                    wrong.push(format!("{what}, not {expected:?}: {begins}"));
                }
                asked += 1;
                refused += usize::from(status >= 400);
            }
        }
    }
    assert!(wrong.is_empty(), "S17:\n{}", wrong.join("\n"));
    assert!(asked > 500, "only {asked} requests");
    assert_eq!(raid.their_rows().await, before, "S17: a row of theirs was changed");
    println!("{asked} requests of strangers, {refused} refused, none shown or changed anything");
}

/// S17: their ids as filters, cursors and parts of what is one's own.
#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_ids_find_nothing_as_filters_cursors_and_links() {
    let raid = Raid::new().await;
    let elsewhere = raid.office.t.world.other_tenant("elsewhere").await;
    let strangers = raid.strangers(elsewhere).await;
    let service = &strangers[0];
    let mut asked = 0;
    for (path, methods) in raid.openapi["paths"].as_object().expect("paths") {
        if path.contains('{') || APART.contains(&path.as_str()) {
            continue;
        }
        for parameter in methods["get"]["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] != "query" {
                continue;
            }
            let name = parameter["name"].as_str().expect("a name");
            for (_, id) in &raid.ids {
                let wanted = format!("{path}?q=lisbon+lease&{name}={id}");
                let (status, answer) = raid.ask(service, "GET", &wanted, None).await;
                assert!(status < 500, "S17: {wanted}: {status} {answer}");
                assert_eq!(raid.leaked(&answer, &wanted), None, "S17: {wanted}: {answer}");
                asked += 1;
            }
        }
    }
    assert!(asked > 100, "only {asked} requests");

    // An activity of one's own cannot be linked to a contact of theirs.
    let world = &raid.office.t.world;
    let own: uuid::Uuid = sqlx::query_scalar(
        "insert into activities (tenant_id, type, raw_data) values ($1, 'note', '{\"source_type\": \"text\", \"content\": \"own\"}') returning id",
    )
    .bind(elsewhere.0)
    .fetch_one(&mut *world.conn().await)
    .await
    .expect("an activity");
    let contact: i64 = raid.id_of("contacts").parse().expect("a number");
    let link = format!("/api/v1/activities/{own}/link");
    let (status, answer) = raid.ask(service, "POST", &link, Some(json!({ "contact_id": contact }))).await;
    assert_eq!(status, 404, "S17: {answer}");
    let linked: Option<i64> = sqlx::query_scalar("select contact_id from activities where id = $1")
        .bind(own)
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("a row");
    assert_eq!(linked, None, "S17: linked to another tenant's contact");

    // An agent's own functions and tables, by their ids.
    let agent = strangers.iter().find(|who| who.name() == "agent").expect("an agent");
    let theirs = raid.id_of("activities");
    for path in [
        format!("/rest/v1/activities?select=*&id=eq.{theirs}"),
        "/rest/v1/activities?select=id,raw_data,metadata".to_owned(),
        "/rest/v1/crm_processing_nodes?select=*".to_owned(),
    ] {
        let (status, answer) = raid.ask(agent, "GET", &path, None).await;
        assert!(status == 200 || status == 404, "{path}: {status} {answer}");
        assert_eq!(raid.leaked(&answer, &path), None, "S17: {path}: {answer}");
    }
    let done = json!({ "processing_status": "completed", "processed_data": { "summary": "owned" } });
    let (status, answer) = raid.ask(agent, "PATCH", &format!("/rest/v1/activities?id=eq.{theirs}"), Some(done)).await;
    assert!(matches!(status, 200 | 204 | 404 | 409), "{status} {answer}");
    let owned =
        raid.office.t.count("select count(*) from activities where processed_data ->> 'summary' = 'owned'").await;
    assert_eq!(owned, 0, "S17: an agent of another tenant completed it");
}

/// S30: what is good elsewhere is no key here: sessions, links, channels' and providers' secrets, keys that have ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_made_for_something_else_opens_no_endpoint() {
    let raid = Raid::new().await;
    let world = &raid.office.t.world;
    let (cookie, _) = raid.sign_in(&raid.office.key).await;
    let session = cookie.split_once('=').expect("a cookie").1.to_owned();
    let mut conn = world.conn().await;
    let dashboard = keys::ensure_dashboard(&mut conn, world.tenant_id).await.expect("a key");
    let made = store::sessions::new_link(&mut conn, None, world.tenant_id, dashboard, 15).await;
    let (link, _) = made.expect("a link");
    let (_, opens) = crate::intake::add_channel(world, world.tenant_id, None).await;
    let all = [Scope::Service];
    let hour = Some(std::time::Duration::from_secs(3_600));
    let (expired_id, expired) =
        keys::create_for(&mut conn, world.tenant_id, None, "expired", &all, hour).await.expect("a key");
    sqlx::query("update tributary.api_keys set expires_at = now() - interval '1 second' where id = $1")
        .bind(expired_id.0)
        .execute(&mut *conn)
        .await
        .expect("expired");
    let (revoked_id, revoked) = keys::create(&mut conn, world.tenant_id, None, "revoked", &all).await.expect("a key");
    assert!(keys::revoke(&mut conn, world.tenant_id, revoked_id).await.expect("revoked"));
    let source = raid.id_of("sources").parse().expect("an id");
    let held = store::tokens::held(&mut conn, None, world.tenant_id, source).await.expect("tokens").expect("a pair");
    let access = held.access_id.expect("an access token");
    let providers = world.env.vault.get(&mut conn, world.tenant_id, access).await.expect("opened").expect("a token");
    let endpoints = [
        ("GET", "/api/v1/documents"),
        ("POST", "/api/v1/documents"),
        ("GET", "/api/v1/search?q=lisbon+lease"),
        ("GET", "/api/v1/keys"),
        ("GET", "/api/v1/events"),
        ("GET", "/documents/events"),
        ("GET", "/rest/v1/activities?select=*"),
        ("POST", "/rest/v1/rpc/claim_next_pending_activity"),
        ("GET", "/realtime/v1/websocket"),
    ];
    let tokens = [
        ("a session", Secret::new(session)),
        ("a sign-in link", link),
        ("a channel's bearer key", opens.bearer),
        ("a channel's signing secret", opens.webhook_secret),
        ("a channel's ingestion key", opens.ingestion_key),
        ("an expired key", expired),
        ("a revoked key", revoked),
        ("a provider's access token", providers),
    ];
    for (name, token) in tokens {
        for (method, path) in endpoints {
            let who = Stranger::Key("service", token.clone());
            let (status, answer) = raid.ask(&who, method, path, None).await;
            // The socket too looks at the key first: only a good one is told that the request is no WebSocket's (426).
            assert_eq!(status, 401, "S30: {name} at {method} {path}: {answer}");
            assert_eq!(raid.leaked(&answer, path), None, "S30: {name} at {method} {path}");
        }
    }
    // And a key is no session.
    let cookie = format!("tributary_session={}", raid.office.key.reveal());
    let page = raid.http.get(format!("{}/documents", raid.office.app.url)).header("cookie", &cookie);
    let shown = page.header("accept", "text/html").send().await.expect("an answer");
    assert!(shown.status().as_u16() >= 300, "S30: a key was taken for a session");
    let api = raid.http.get(format!("{}/api/v1/documents", raid.office.app.url)).header("cookie", &cookie).send().await;
    assert_eq!(api.expect("an answer").status().as_u16(), 401, "S30: a key was taken for a session");
}
