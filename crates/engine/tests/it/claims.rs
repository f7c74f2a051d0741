//! Activities as agents see them: who is handed what, in which order, and what becomes of work whose agent went silent.

use std::collections::HashMap;
use std::time::Duration;

use domain::{Caller, PersonId, Scope};
use serde_json::{Value, json};
use store::rest::{self, Condition, Operator, Table, Wanted};
use store::{keys, people};
use testkit::World;
use uuid::Uuid;

/// A tenant with people; times are ages in minutes.
pub(crate) struct Office {
    pub(crate) world: World,
    people: HashMap<&'static str, PersonId>,
}

impl Office {
    pub(crate) async fn new(names: &[&'static str]) -> Self {
        let world = World::now().await;
        let mut people = HashMap::new();
        for name in names {
            let email = format!("{name}@office.test");
            let person = people::ensure(&mut *world.conn().await, world.tenant_id, &email).await.expect("a person");
            people.insert(*name, person);
        }
        Self { world, people }
    }

    pub(crate) async fn set(&self, who: &str, what: &'static str) {
        let changed = sqlx::query(what).bind(self.people[who].0).execute(&mut *self.world.conn().await).await;
        assert_eq!(changed.expect("a change").rows_affected(), 1);
    }

    pub(crate) async fn activity(&self, owner: Option<&str>, source_type: &str, minutes: f64) -> Uuid {
        sqlx::query_scalar(
            "insert into activities (tenant_id, type, sales_id, raw_data, created_at)
             values ($1, 'note', $2, jsonb_build_object('source_type', $3::text, 'content', 'x'), now() - make_interval(secs => 60 * $4))
             returning id",
        )
        .bind(self.world.tenant_id.0)
        .bind(owner.map(|owner| self.people[owner].0))
        .bind(source_type)
        .bind(minutes)
        .fetch_one(&mut *self.world.conn().await)
        .await
        .expect("an activity")
    }

    async fn claims(&self, function: &str, who: &str, limit: i32) -> Vec<(Uuid, bool)> {
        let sql = format!("select id, is_global from {function}($1, $2)");
        sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(self.people[who].0)
            .bind(limit)
            .fetch_all(&mut *self.world.conn().await)
            .await
            .expect("claims")
    }

    pub(crate) async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a number")
    }
}

const NEXT: &str = "claim_next_pending_activity";
const STALE: &str = "claim_stale_activity";

#[tokio::test]
async fn own_work_comes_first_then_everyones_then_what_others_left_waiting() {
    let office = Office::new(&["ann", "bob", "private", "patient"]).await;
    office.set("private", "update sales set allow_remote_processing = false where id = $1").await;
    office.set("patient", "update sales set stale_threshold_minutes = 60 where id = $1").await;
    let bobs_old = office.activity(Some("bob"), "text", 30.0).await;
    let bobs_new = office.activity(Some("bob"), "text", 14.0).await;
    let patients = office.activity(Some("patient"), "text", 59.0).await;
    let privates = office.activity(Some("private"), "text", 900.0).await;
    let global_new = office.activity(None, "text", 1.0).await;
    let global_old = office.activity(None, "text", 2.0).await;
    let own_new = office.activity(Some("ann"), "text", 0.5).await;
    let own_old = office.activity(Some("ann"), "url", 0.7).await;
    let foreign = office.world.other_tenant("elsewhere").await;
    sqlx::query("insert into activities (tenant_id, type, raw_data, created_at) values ($1, 'note', '{\"source_type\":\"text\"}', now() - interval '1 day')")
        .bind(foreign.0)
        .execute(&mut *office.world.conn().await)
        .await
        .expect("another tenant's activity");

    let one_by_one = [own_old, own_new, global_old, global_new, bobs_old];
    for (nth, wanted) in one_by_one.into_iter().enumerate() {
        let claimed = office.claims(NEXT, "ann", 1).await;
        assert_eq!(claimed, [(wanted, (2..4).contains(&nth))], "the claim number {nth}");
    }
    assert_eq!(office.claims(NEXT, "ann", 10).await, [], "what is left is nobody else's");
    assert_eq!(office.number("select count(*) from activities where processing_status = 'raw'").await, 4);

    // Stale: five minutes are enough where the owner allows it, whatever that owner's own threshold.
    let stale: Vec<Uuid> = office.claims(STALE, "ann", 10).await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(stale, [patients, bobs_new]);
    let own: Vec<Uuid> = office.claims(STALE, "private", 10).await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(own, [privates]);
}

#[tokio::test]
async fn a_person_is_handed_only_what_their_agents_can_process() {
    let office = Office::new(&["ann"]).await;
    office.set("ann", "update sales set processes = '{text}' where id = $1").await;
    office.activity(None, "url", 20.0).await;
    let text = office.activity(None, "text", 10.0).await;
    assert_eq!(office.claims(NEXT, "ann", 10).await, [(text, true)]);
    assert_eq!(office.claims(STALE, "ann", 10).await, []);
    office.set("ann", "update sales set processes = '{}' where id = $1").await;
    office.activity(Some("ann"), "text", 10.0).await;
    assert_eq!((office.claims(NEXT, "ann", 10).await, office.claims(STALE, "ann", 10).await), (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_who_claim_at_once_never_share_an_activity() {
    let office = Office::new(&["ann", "bob", "eve", "joe"]).await;
    sqlx::query(
        "insert into activities (tenant_id, type, sales_id, raw_data, created_at)
         select $1, 'note', (array[null, $2, $3])[1 + n % 3], '{\"source_type\":\"text\"}', now() - n * interval '20 minutes'
         from generate_series(1, 1200) n",
    )
    .bind(office.world.tenant_id.0)
    .bind(office.people["ann"].0)
    .bind(office.people["bob"].0)
    .execute(&mut *office.world.conn().await)
    .await
    .expect("activities");
    // A session each: none waits for another's.
    let db = store::Db::lazy(&office.world.database.login, 200, Duration::from_secs(30));
    let sessions = futures_util::future::join_all((0..200).map(|_| db.acquire())).await;
    let claimers = sessions.into_iter().enumerate().map(|(nth, session)| {
        let who = office.people[["ann", "bob", "eve", "joe"][nth % 4]];
        async move {
            let (mut session, mut mine) = (session.expect("a session"), Vec::new());
            let sql = if nth % 2 == 0 {
                "select id from claim_next_pending_activity($1, $2)"
            } else {
                "select id from claim_stale_activity($1, $2)"
            };
            loop {
                let claimed: Vec<Uuid> = sqlx::query_scalar(sql)
                    .bind(who.0)
                    .bind(1 + nth as i32 % 3)
                    .fetch_all(&mut *session)
                    .await
                    .expect("claims");
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed);
            }
        }
    });
    let mut all: Vec<Uuid> = futures_util::future::join_all(claimers).await.concat();
    assert_eq!(all.len(), 1_200);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 1_200, "an activity was handed out twice");
    assert_eq!(office.number("select count(*) from activities where lock_epoch <> 1").await, 0);
}

#[tokio::test]
async fn work_of_a_silent_agent_goes_back_is_counted_and_ends_as_a_dead_letter() {
    let office = Office::new(&["ann"]).await;
    let id = office.activity(None, "text", 1.0).await;
    let unlock = "select unlock_stale_locks()::int8";
    for recovery in 1..=4 {
        assert_eq!(office.claims(NEXT, "ann", 1).await, [(id, true)]);
        assert_eq!(office.number(unlock).await, 0, "a fresh lock was taken away");
        let sql = "with aged as (update activities set locked_at = now() - interval '6 minutes' where processing_status = 'processing' returning 1)
            select count(*) from aged";
        assert_eq!(office.number(sql).await, 1);
        assert_eq!(office.number("select reset_stale_locks()::int8").await, 0, "30 minutes have not passed");
        assert_eq!(office.number(unlock).await, 1);
        let counted = office.number("select (metadata ->> 'recovery_count')::int8 from activities").await;
        assert_eq!(counted, recovery);
    }
    let buried = "select count(*) from activity_failures f join activities a on a.id = f.original_activity_id
        where a.processing_status = 'failed' and a.locked_by is null and a.metadata -> 'error' ->> 'type' = 'Abandoned'";
    assert_eq!(office.number(buried).await, 1);
    assert_eq!(office.claims(NEXT, "ann", 1).await, []);
}

impl Office {
    /// A device of this person, with its own key.
    pub(crate) async fn device(&self, who: &str, scopes: &[Scope]) -> Caller {
        let mut conn = self.world.conn().await;
        let made = keys::create(&mut conn, self.world.tenant_id, Some(self.people[who]), "device", scopes).await;
        keys::authenticate(&mut conn, &made.expect("a key").1).await.expect("an answer").expect("a caller")
    }

    /// Writes as the REST API does, in the caller's own transaction. Returns the rows, or the SQLSTATE.
    pub(crate) async fn write(&self, caller: &Caller, id: Uuid, body: Value) -> Result<Vec<Value>, String> {
        let table = Table::find("activities").expect("a table");
        let column = table.column("id").expect("a column");
        let condition = Condition { column, is_not: false, operator: Operator::Eq, values: vec![id.to_string()] };
        let wanted = Wanted { conditions: vec![condition], ..Wanted::default() };
        let mut tx = self.world.env.db.begin_as(caller).await.expect("a transaction");
        let written = rest::update(&mut tx, table, body.as_object().expect("columns"), &wanted).await;
        match written {
            Ok(rows) => {
                tx.commit().await.expect("committed");
                Ok(rows.into_iter().map(|written| written.row).collect())
            }
            Err(error) => {
                // Not left to the drop, which only sends it later: a claim passes over a row that is still locked.
                tx.rollback().await.expect("rolled back");
                Err(error.code().unwrap_or_else(|| error.to_string()))
            }
        }
    }

    pub(crate) async fn claim_as(&self, caller: &Caller) -> Vec<(Uuid, i32)> {
        let mut tx = self.world.env.db.begin_as(caller).await.expect("a transaction");
        let claimed = store::claims::claim(&mut tx, 1, &["text", "url"]).await.expect("a claim");
        tx.commit().await.expect("committed");
        claimed.into_iter().map(|claim| (claim.id, claim.lock_epoch)).collect()
    }

    pub(crate) async fn run(&self, sql: &'static str) {
        sqlx::query(sql).execute(&mut *self.world.conn().await).await.expect(sql);
    }
}

/// F40, I3.
#[tokio::test]
async fn only_the_key_that_claimed_completes_and_a_late_result_overwrites_nothing() {
    let office = Office::new(&["ann", "bob"]).await;
    let id = office.activity(None, "text", 1.0).await;
    let (ann, bob) = (office.device("ann", &[Scope::Agent]).await, office.device("bob", &[Scope::Agent]).await);
    let anns_other = office.device("ann", &[Scope::Agent]).await;
    let done = |text: &str| json!({ "processing_status": "completed", "processed_data": { "summary": text } });
    assert_eq!(office.write(&ann, id, done("unclaimed")).await, Err("PT409".into()), "F40: never claimed");
    assert_eq!(office.claim_as(&ann).await, [(id, 1)]);
    for (thief, who) in [(&bob, "another person"), (&anns_other, "another device of hers")] {
        assert_eq!(office.write(thief, id, done("stolen")).await, Err("PT409".into()), "F40: {who}");
    }
    // She may not write these columns: owner, contact, lock number, content, creation.
    for body in [
        json!({ "sales_id": 1 }),
        json!({ "contact_id": 1 }),
        json!({ "lock_epoch": 9 }),
        json!({ "raw_data": {} }),
        json!({ "created_at": "2020-01-01" }),
    ] {
        assert_eq!(office.write(&ann, id, body.clone()).await, Err("42501".into()), "{body}");
    }
    for result in [
        json!("text"),
        json!([1]),
        json!({ "summary": 7 }),
        json!({ "facts": "one" }),
        json!({ "transcript": {} }),
        json!({ "summary": "x".repeat(5 << 20) }),
    ] {
        let body = json!({ "processing_status": "completed", "processed_data": result });
        assert_eq!(office.write(&ann, id, body).await, Err("22023".into()), "F40: off its schema, or too large");
    }
    // She renews, by our clock; then goes silent, and Bob takes over.
    let renewed = office.write(&ann, id, json!({ "locked_at": "2001-01-01T00:00:00Z" })).await.expect("renewed");
    assert_ne!(renewed[0]["locked_at"].as_str().map(|at| &at[..4]), Some("2001"));
    office.run("update activities set locked_at = now() - interval '6 minutes'").await;
    assert_eq!(office.number("select unlock_stale_locks()::int8").await, 1);
    assert_eq!(office.claim_as(&bob).await, [(id, 2)]);
    assert_eq!(office.write(&ann, id, done("late")).await, Err("PT409".into()), "I3");
    let completed = office.write(&bob, id, done("his")).await.expect("completed");
    assert_eq!((&completed[0]["processed_data"]["summary"], &completed[0]["locked_by"]), (&json!("his"), &Value::Null));
    assert_eq!(office.write(&bob, id, done("again")).await, Err("PT409".into()), "done is done");
    // Another tenant's key sees no such row.
    let elsewhere = office.world.other_tenant("elsewhere").await;
    let (stranger, _) = office.world.caller(elsewhere, &[Scope::Agent]).await;
    assert_eq!(office.write(&stranger, id, done("foreign")).await, Ok(vec![]), "S17");
}

#[tokio::test]
async fn a_device_that_beats_keeps_its_work_and_a_silent_one_loses_it() {
    let office = Office::new(&["ann", "bob"]).await;
    let id = office.activity(None, "text", 1.0).await;
    let ann = office.device("ann", &[Scope::Agent]).await;
    assert_eq!(office.claim_as(&ann).await, [(id, 1)]);
    let nodes = Table::find("crm_processing_nodes").expect("a table");
    let beat = async |caller: &Caller, who: &str| {
        let row = json!({ "sales_id": office.people[who].0, "device_name": "laptop", "status": "processing", "current_activity_id": id });
        let mut tx = office.world.env.db.begin_as(caller).await.expect("a transaction");
        match rest::insert(&mut tx, nodes, row.as_object().expect("a row"), true, &[]).await {
            Ok(written) => {
                tx.commit().await.expect("committed");
                Ok::<_, String>(written)
            }
            Err(error) => {
                tx.rollback().await.expect("rolled back"); // not left to the drop, which only sends it later
                Err(error.code().unwrap_or_default())
            }
        }
    };
    let node = beat(&ann, "ann").await.expect("a heartbeat");
    assert!(node.is_news, "a new device is news");
    assert_eq!(
        (&node.row["enabled"], &node.row["concurrency"]),
        (&json!(true), &json!(1)),
        "what the Agents page says comes back"
    );
    assert_eq!(beat(&ann, "bob").await.err(), Some("42501".into()), "nobody beats for somebody else");
    let age = "update activities set locked_at = now() - interval '31 minutes'";
    office.run(age).await;
    assert_eq!(
        office.number("select unlock_stale_locks()::int8 + reset_stale_locks()").await,
        0,
        "its device was heard just now"
    );
    assert!(!beat(&ann, "ann").await.expect("a heartbeat").is_news, "the same again is no news");
    assert_eq!(
        office.number("select count(*) from activities where locked_at > now() - interval '1 minute'").await,
        1,
        "a heartbeat renews the lock"
    );
    assert_eq!(office.number("select count(*) from crm_processing_nodes").await, 1, "one row a device");
    // Three minutes of silence. Only the table's owner can set that, because every other write counts as a heartbeat.
    let silent = "set role tributary_owner; alter table crm_processing_nodes disable trigger user;
        update crm_processing_nodes set last_heartbeat = now() - interval '3 minutes'; alter table crm_processing_nodes enable trigger user";
    sqlx::raw_sql(silent).execute(&mut office.world.login_conn().await).await.expect("silence");
    office.run(age).await;
    assert_eq!(office.number("select unlock_stale_locks()::int8").await, 1);
    assert!(beat(&ann, "ann").await.expect("a heartbeat").is_news, "a device that is heard again is news");
    office.run("update crm_processing_nodes set status = 'ready'").await;
    assert!(beat(&ann, "ann").await.expect("a heartbeat").is_news, "another status is news");
}

#[tokio::test]
async fn what_failed_is_tried_again_three_times_within_a_day_and_then_buried() {
    let office = Office::new(&["ann"]).await;
    let id = office.activity(None, "text", 1.0).await;
    let agent = office.device("ann", &[Scope::Agent]).await;
    let failed = json!({ "processing_status": "failed", "metadata": { "retry_count": "garbage", "error": { "type": "LLMError", "message": "away", "timestamp": "never" } } });
    let retry = "select tributary.retry_failed()::int8";
    for nth in 0..4_i64 {
        assert_eq!(office.claim_as(&agent).await.len(), 1, "round {nth}");
        let row = office.write(&agent, id, failed.clone()).await.expect("failed");
        assert_eq!(row[0]["metadata"]["error"]["type"], "LLMError");
        assert_eq!(office.number(retry).await, 0, "not before an hour has passed");
        office.run("update activities set metadata = jsonb_set(metadata, '{error,timestamp}', to_jsonb(now() - interval '61 minutes'))").await;
        assert_eq!(office.number(retry).await, i64::from(nth < 3));
        assert_eq!(
            office.number("select coalesce((metadata ->> 'retry_count')::int8, 0) from activities").await,
            (nth + 1).min(3)
        );
    }
    assert_eq!(
        office.number("select count(*) from activity_failures where failure_reason = 'LLMError: away'").await,
        1
    );
    assert_eq!(office.number(retry).await, 0);
    // A person brings it back, whatever the counts; an agent alone may not.
    assert_eq!(office.write(&agent, id, json!({ "processing_status": "raw" })).await, Err("42501".into()));
    let person = office.device("ann", &[Scope::Agent, Scope::Write]).await;
    let row = office.write(&person, id, json!({ "processing_status": "raw" })).await.expect("retried");
    assert_eq!((&row[0]["processing_status"], &row[0]["metadata"]["error"]), (&json!("raw"), &Value::Null));
    // Skipped by a person: no clock brings it back.
    assert!(
        store::activities::skip(&mut *office.world.conn().await, office.world.tenant_id, domain::ActivityId(id), "ann")
            .await
            .expect("skipped")
    );
    office.run("update activities set metadata = jsonb_set(metadata, '{error,timestamp}', to_jsonb(now() - interval '2 hours'))").await;
    assert_eq!(office.number(retry).await, 0);
}

/// F40.
#[tokio::test]
async fn whatever_an_agent_calls_its_error_only_a_person_ends_an_activity() {
    let office = Office::new(&["ann"]).await;
    let agent = office.device("ann", &[Scope::Agent]).await;
    let words = [json!("Skipped"), json!("Abandoned"), json!("skipped"), json!(["Skipped"]), Value::Null, json!("")];
    for word in words {
        let id = office.activity(None, "text", 1.0).await;
        let said = json!({ "type": word, "message": "it is over", "timestamp": "infinity", "retry_count": -1 });
        let mut rounds = 0;
        while office.claim_as(&agent).await.len() == 1 {
            rounds += 1;
            assert!(rounds < 9, "I1: {word} is tried again for ever");
            let body = json!({ "processing_status": "failed", "metadata": { "error": said } });
            office.write(&agent, id, body).await.expect("failed");
            office.run("select * from tributary.retry_activities(now() + interval '61 minutes')").await;
        }
        assert_eq!(rounds, 4, "F40: an error of type {word} made the activity disappear");
        let letters = "select count(*) from activity_failures f join activities a on a.id = f.original_activity_id
            where a.processing_status = 'failed'";
        assert_eq!(office.number(letters).await, 1, "I1: {word} is no dead letter");
        // A person decides: that is final, and leaves no dead letter.
        let mut conn = office.world.conn().await;
        let skipped = store::activities::skip(&mut conn, office.world.tenant_id, domain::ActivityId(id), "ann");
        assert!(skipped.await.expect("skipped"));
        drop(conn);
        office.run("select * from tributary.retry_activities(now() + interval '3 days')").await;
        assert_eq!(office.number(letters).await, 0, "{word}");
        assert_eq!(office.claim_as(&agent).await, [], "a skipped one came back");
    }
}
