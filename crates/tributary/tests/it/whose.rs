//! For whom an agent claims, and who it is, asked with Supabase's own client, unmodified.

use domain::{Scope, Secret, TenantId};
use serde_json::{Value, json};
use store::{keys, people};

use crate::agents::{Agent, LONG, Office};

/// People of an office, by number, with a key of an agent for each.
struct Staff {
    office: Office,
    ann: (i64, Secret),
    bob: (i64, Secret),
}

impl Staff {
    async fn new() -> Self {
        let office = Office::new().await;
        let tenant_id = office.world.tenant_id;
        let person = async |email: &str| person(&office, tenant_id, email, &[Scope::Agent]).await;
        let (ann, bob) = (person("ann@office.test").await, person("bob@office.test").await);
        Self { ann, bob, office }
    }

    /// The answers to five claims of the client in the name of `whom`: contents, or codes of refusals.
    async fn claims(&self, key: &Secret, whom: &str) -> Vec<Value> {
        let agent = Agent::start(&self.office, "claim", key, "claims", whom, 0);
        agent.says("over", LONG, |_| true).await.expect("an end");
        let shown = |line: Value| if line["code"].is_null() { line["content"].clone() } else { line["code"].clone() };
        agent.said("claim").into_iter().map(shown).collect()
    }

    /// Activities of everybody's, each of some age, all waiting.
    async fn fill(&self) {
        self.office.run("delete from activities").await;
        for (owner, content, minutes) in [
            (Some(self.ann.0), "ann's newer", 1),
            (Some(self.ann.0), "ann's older", 2),
            (None, "everyone's newer", 3),
            (None, "everyone's older", 4),
            (Some(self.bob.0), "bob's left waiting", 20),
            (Some(self.bob.0), "bob's", 14),
        ] {
            let sql = "insert into activities (tenant_id, type, sales_id, raw_data, created_at)
                values ($1, 'note', $2, jsonb_build_object('source_type', 'text', 'content', $3::text), now() - make_interval(mins => $4))";
            let inserted = sqlx::query(sql).bind(self.office.world.tenant_id.0).bind(owner).bind(content).bind(minutes);
            inserted.execute(&mut *self.office.world.conn().await).await.expect("an activity");
        }
    }
}

async fn person(office: &Office, tenant_id: TenantId, email: &str, scopes: &[Scope]) -> (i64, Secret) {
    let mut conn = office.world.conn().await;
    let id = people::ensure(&mut conn, tenant_id, email).await.expect("a person");
    let made = keys::create(&mut conn, tenant_id, Some(id), "device", scopes).await.expect("a key");
    (id.0, made.1)
}

/// S17: `p_agent_sales_id` given, left out, null and wrong.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_claims_in_order_for_its_own_person_and_for_nobody_else() {
    let staff = Staff::new().await;
    let (ann, bob) = (&staff.ann, &staff.bob);
    let order = ["ann's older", "ann's newer", "everyone's older", "everyone's newer", "bob's left waiting"];
    for whom in [ann.0.to_string(), String::new(), "null".to_owned()] {
        staff.fill().await;
        assert_eq!(staff.claims(&ann.1, &whom).await, order.map(Value::from), "for {whom:?}");
    }
    staff.fill().await;
    let elsewhere = staff.office.world.other_tenant("elsewhere").await;
    let stranger = person(&staff.office, elsewhere, "mallory@elsewhere.test", &[Scope::Agent]).await;
    for whom in [bob.0, stranger.0, 999_999, 0, -1] {
        let refused = staff.claims(&ann.1, &whom.to_string()).await;
        assert_eq!(refused, ["42501"; 5].map(Value::from), "S17: {whom} is not ann");
    }

    // A service key names anyone of its own tenant, and has to name somebody.
    let tenant_id = staff.office.world.tenant_id;
    let (_, service) = staff.office.world.caller(tenant_id, &[Scope::Service]).await;
    for whom in [String::new(), "null".to_owned(), stranger.0.to_string(), "999999".to_owned()] {
        assert_eq!(staff.claims(&service, &whom).await, ["42501"; 5].map(Value::from), "S17: for {whom:?}");
    }
    let bobs = ["bob's left waiting", "bob's", "everyone's older", "everyone's newer"].map(Value::from);
    let claimed = staff.claims(&service, &bob.0.to_string()).await;
    assert_eq!(claimed, [&bobs[..], &[Value::Null]].concat(), "ann's have not waited long enough");
    assert_eq!(staff.claims(&stranger.1, "").await, [const { Value::Null }; 5], "S17: another tenant's");
}

/// S17: `/rest/v1/sales` has the caller's own row.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_asks_who_it_is_and_hears_of_nobody_else() {
    let staff = Staff::new().await;
    let tenant_id = staff.office.world.tenant_id;
    // More rights do not show more people here.
    let eve = person(&staff.office, tenant_id, "eve@office.test", &[Scope::Read, Scope::Write, Scope::Agent]).await;
    let joe = person(&staff.office, tenant_id, "joe@office.test", &[Scope::Service]).await;
    for (email, me) in [("ann@office.test", &staff.ann), ("eve@office.test", &eve), ("joe@office.test", &joe)] {
        let other = staff.bob.0.to_string();
        let agent = Agent::start(&staff.office, "who", &me.1, "who", &other, 0);
        let last = agent.says("insert", LONG, |_| true).await.expect("an end");
        let said = |event: &str| agent.said(event).pop().expect("an answer");
        let row = &said("me")["data"];
        assert_eq!((&row["id"], &row["email"]), (&json!(me.0), &json!(email)));
        assert_eq!(
            json!([
                row["stale_threshold_minutes"],
                row["allow_remote_processing"],
                row["built_in_agent"],
                row["processes"]
            ]),
            json!([15, true, false, ["text", "url"]]),
        );
        assert!(row["user_id"].as_str().is_some() && row.get("tenant_id").is_none(), "{row}");
        assert_eq!(said("all")["data"], json!([{ "id": me.0, "email": email }]), "S17: others are shown to {email}");
        assert_eq!((&said("other")["data"], &said("other")["code"]), (&Value::Null, &Value::Null), "S17");
        assert_eq!((&said("change")["code"], &last["code"]), (&json!("42501"), &json!("42501")), "S17: {last}");
    }
    let (_, nobody) = staff.office.world.caller(tenant_id, &[Scope::Service]).await;
    let agent = Agent::start(&staff.office, "who", &nobody, "who", &staff.bob.0.to_string(), 0);
    agent.says("insert", LONG, |_| true).await.expect("an end");
    let said = |event: &str| agent.said(event).pop().expect("an answer");
    assert_eq!((&said("me")["code"], &said("all")["data"]), (&json!("PGRST116"), &json!([])), "a key of nobody's");

    // The database says the same to a key that is an agent's alone, whatever asks.
    let mut conn = staff.office.world.conn().await;
    let caller = keys::authenticate(&mut conn, &staff.ann.1).await.expect("an answer").expect("a caller");
    let seen = staff.office.world.env.db.read(&caller, async |tx| people::list(tx, tenant_id).await).await;
    let seen: Vec<i64> = seen.expect("rows").iter().map(|person| person.id).collect();
    assert_eq!(seen, [staff.ann.0], "S17: the table shows an agent other people");
}
