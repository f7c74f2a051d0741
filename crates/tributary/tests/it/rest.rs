//! Agents over HTTP, as PostgREST's clients speak: claim, complete, late results, devices, and errors in the shape they read.

use domain::{Scope, Secret};
use serde_json::{Value, json};
use store::{keys, people};
use testkit::World;

use crate::app::{App, Folder, client};
use crate::browser::serve;

pub struct Agent<'a> {
    pub app: &'a App,
    pub key: Secret,
}

impl Agent<'_> {
    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> (u16, Value) {
        let request = client().request(method.parse().expect("a method"), format!("{}/rest/v1/{path}", self.app.url));
        let request = request.header("apikey", self.key.reveal()).bearer_auth(self.key.reveal()).header("prefer", "");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = body.iter().fold(request, |request, body| request.json(body));
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }
}

pub async fn agent<'a>(world: &World, app: &'a App, email: &str) -> Agent<'a> {
    let mut conn = world.conn().await;
    let person = people::ensure(&mut conn, world.tenant_id, email).await.expect("a person");
    let (_, key) =
        keys::create(&mut conn, world.tenant_id, Some(person), "device", &[Scope::Agent]).await.expect("a key");
    Agent { app, key }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_claims_completes_and_hears_when_it_is_too_late() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let (ann, bob) = (agent(&world, &app, "ann@office.test").await, agent(&world, &app, "bob@office.test").await);
    let insert = "insert into activities (tenant_id, type, raw_data) select $1, 'note', jsonb_build_object('source_type', 'text', 'content', 'n' || n) from generate_series(1, 3) n";
    sqlx::query(insert).bind(world.tenant_id.0).execute(&mut *world.conn().await).await.expect("rows");
    let claim = "rpc/claim_next_pending_activity";
    let (status, claimed) = ann.ask("POST", claim, &[], Some(json!({}))).await;
    assert_eq!(status, 200, "{claimed}");
    assert_eq!(
        (claimed.as_array().map(Vec::len), &claimed[0]["is_global"], &claimed[0]["lock_epoch"]),
        (Some(1), &json!(true), &json!(1))
    );
    let id = claimed[0]["id"].as_str().expect("an id").to_owned();
    let row = format!("activities?id=eq.{id}");
    let done = json!({ "processing_status": "completed", "processed_data": { "summary": "done" } });

    let (status, error) = bob.ask("PATCH", &row, &[], Some(done.clone())).await;
    assert_eq!((status, &error["code"]), (409, &json!("PT409")), "{error}");
    assert!(error["message"].as_str().is_some_and(|message| message.starts_with("lock lost")), "{error}");
    assert!(error.get("details").is_some_and(Value::is_null) && error.get("hint").is_some_and(Value::is_null));
    let (status, error) = ann.ask("PATCH", &format!("{row}&lock_epoch=eq.7"), &[], Some(done.clone())).await;
    assert_eq!((status, &error["code"]), (409, &json!("PT409")), "no row would look like success: {error}");
    let (status, rows) = ann
        .ask(
            "PATCH",
            &format!("{row}&lock_epoch=eq.1&select=id,processing_status"),
            &[("prefer", "return=representation")],
            Some(done.clone()),
        )
        .await;
    assert_eq!((status, rows), (200, json!([{ "id": id, "processing_status": "completed" }])));
    assert_eq!(ann.ask("PATCH", &row, &[], Some(done.clone())).await.0, 409, "done is done");
    let remembered = "select count(*) from pgmq.q_remember_activity";
    let queued: i64 = sqlx::query_scalar(remembered).fetch_one(&mut *world.conn().await).await.expect("a count");
    assert_eq!(queued, 4, "three that came, one that was completed");

    let (status, rows) = bob
        .ask(
            "GET",
            "activities?select=id&processing_status=eq.raw&order=created_at.asc&limit=1",
            &[("prefer", "count=exact")],
            None,
        )
        .await;
    assert_eq!((status, rows.as_array().map(Vec::len)), (200, Some(1)));
    let (status, one) = bob.ask("GET", &row, &[("accept", "application/vnd.pgrst.object+json")], None).await;
    assert_eq!((status, &one["id"]), (200, &json!(id)));
    let (status, error) =
        bob.ask("GET", "activities?event_key=eq.none", &[("accept", "application/vnd.pgrst.object+json")], None).await;
    assert_eq!(
        (status, &error["code"], &error["details"]),
        (406, &json!("PGRST116"), &json!("The result contains 0 rows"))
    );
    let both =
        [bob.ask("POST", claim, &[], Some(json!({ "p_limit": 5 }))).await.1, ann.ask("POST", claim, &[], None).await.1];
    assert_eq!(both.each_ref().map(|rows| rows.as_array().map(Vec::len)), [Some(2), Some(0)], "nothing left is []");

    let person: i64 = sqlx::query_scalar("select id from sales where email = 'bob@office.test'")
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("a person");
    let node = json!({ "sales_id": person, "device_name": "laptop", "status": "ready" });
    for _ in 0..2 {
        let prefer = [("prefer", "resolution=merge-duplicates,return=representation")];
        let (status, rows) = bob
            .ask("POST", "crm_processing_nodes?on_conflict=sales_id,app_name,device_name", &prefer, Some(node.clone()))
            .await;
        assert_eq!((status, &rows[0]["app_name"]), (201, &json!("atomic-crm")), "{rows}");
    }
    for (method, path, body, wanted) in [
        ("POST", "rpc/pg_sleep", Some(json!({})), (404, "PGRST202")),
        ("POST", claim, Some(json!({ "p_agent_sales_id": person })), (403, "42501")),
        ("POST", claim, Some(json!({ "evil": 1 })), (400, "PGRST204")),
        ("GET", "tenants", None, (404, "PGRST205")),
        ("GET", "activities?id=eq.not-a-uuid", None, (400, "22P02")),
        ("GET", "activities?tenant_id=eq.x", None, (400, "42703")),
        ("PATCH", "activities", Some(done.clone()), (400, "21000")),
        ("PATCH", &row, Some(json!({ "tenant_id": "x" })), (400, "PGRST204")),
        ("PATCH", &row, Some(json!({ "sales_id": 1 })), (403, "42501")),
        ("POST", "activities", Some(json!({ "type": "note" })), (403, "42501")),
    ] {
        let (status, error) = ann.ask(method, path, &[], body).await;
        assert_eq!((status, error["code"].as_str()), (wanted.0, Some(wanted.1)), "{method} {path}: {error}");
    }
    let options = client()
        .request("OPTIONS".parse().expect("a method"), format!("{}/rest/v1/activities", app.url))
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        (options.status().as_u16(), &options.headers()["access-control-allow-origin"]),
        (204, &"*".parse().expect("a value"))
    );
    let nobody = Agent { app: &app, key: Secret::new("trb_nobody") };
    let (status, error) = nobody.ask("GET", "activities", &[], None).await;
    assert_eq!((status, &error["code"]), (401, &json!("PGRST301")));
    let (_, reader) = world.caller(world.tenant_id, &[Scope::Read]).await;
    assert_eq!(
        Agent { app: &app, key: reader }.ask("GET", "activities", &[], None).await.0,
        403,
        "an agent's key is another"
    );
}

/// S25: a key that is revoked while it holds a claim is refused within five seconds, also for the result of that claim.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_in_the_middle_of_a_claim_completes_nothing() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let thief = agent(&world, &app, "ann@office.test").await;
    let insert = "insert into activities (tenant_id, type, raw_data) values ($1, 'note', '{\"source_type\": \"text\", \"content\": \"x\"}')";
    sqlx::query(insert).bind(world.tenant_id.0).execute(&mut *world.conn().await).await.expect("an activity");
    let (status, claimed) = thief.ask("POST", "rpc/claim_next_pending_activity", &[], Some(json!({}))).await;
    assert_eq!(status, 200, "{claimed}");
    let row = format!("activities?id=eq.{}&lock_epoch=eq.1", claimed[0]["id"].as_str().expect("an id"));
    let mut conn = world.conn().await;
    let key = keys::authenticate(&mut conn, &thief.key).await.expect("an answer").expect("a caller").key_id;
    // By another process: this server learns of it by looking again.
    assert!(keys::revoke(&mut conn, world.tenant_id, key).await.expect("revoked"));
    let begun = std::time::Instant::now();
    let is_refused = testkit::wait_until(std::time::Duration::from_secs(5), async || {
        thief.ask("GET", "activities?select=id", &[], None).await.0 == 401
    });
    assert!(is_refused.await, "S25: a revoked key still reads");
    println!("refused {:?} after it was revoked", begun.elapsed());
    let done = json!({ "processing_status": "completed", "processed_data": { "summary": "stolen" } });
    assert_eq!(thief.ask("PATCH", &row, &[], Some(done)).await.0, 401, "S25: a revoked key completes");
    assert_eq!(thief.ask("POST", "rpc/claim_next_pending_activity", &[], Some(json!({}))).await.0, 401, "S25");
    let stolen: i64 = sqlx::query_scalar("select count(*) from activities where processing_status = 'completed'")
        .fetch_one(&mut *conn)
        .await
        .expect("a count");
    assert_eq!(stolen, 0, "S25");
}
