//! `engine::waiting` says in words what the claim functions decide in SQL: on real rows both must agree.

use std::collections::BTreeSet;

use domain::{Caller, PersonId};
use engine::waiting::{self, Turn};
use store::claims;
use testkit::World;
use uuid::Uuid;

/// People, with patience in minutes, whether others and the built-in agent may process their work, and what their agents are handed.
const PEOPLE: [(&str, i32, bool, bool, &[&str]); 8] = [
    ("usual", 15, true, false, &["text", "url"]),
    ("hasty", 2, true, false, &["text", "url"]),
    ("at once", 0, true, false, &["text"]),
    ("private", 15, false, false, &["text", "url"]),
    ("hasty and private", 0, false, false, &["url"]),
    ("deaf", 15, true, false, &["text"]),
    ("served", 15, true, true, &["text"]),
    ("served and private", 15, false, true, &["text", "url"]),
];

#[tokio::test]
async fn whom_waiting_names_is_whom_the_claim_functions_hand_it_to() {
    let world = World::now().await;
    let people = people(&world).await;
    let mut situations = Vec::new();
    for owner in people.iter().copied().map(Some).chain([None]) {
        for source_type in ["text", "url"] {
            // Far enough from each limit (0, 2, 5 and 15 minutes) for the time the test takes.
            for age_secs in [1, 60, 150, 240, 360, 840, 960] {
                let id = activity(&world, owner, source_type, age_secs).await;
                situations.push((id, format!("{source_type} of {owner:?}, {age_secs} s old")));
            }
        }
    }
    let caller = Caller::local("test", world.tenant_id, true);
    let mut n_claimable = 0;
    let built_in =
        claims::ensure_agent(&mut *world.conn().await, world.tenant_id, &["text"]).await.expect("an agent").0;
    for agent in people.into_iter().chain([built_in]) {
        let node = "insert into crm_processing_nodes (tenant_id, sales_id, device_name) values ($1, $2, 'laptop')";
        let online = sqlx::query(node).bind(world.tenant_id.0).bind(agent.0).execute(&mut *world.conn().await).await;
        online.expect("a device");
        let overview = waiting::overview(&world.env, &caller).await.expect("an overview");
        let claimed = claimable(&world, agent).await;
        for (id, situation) in &situations {
            let turn = overview.wait(*id).expect("it waits").turn;
            let is_claimed = claimed.contains(id);
            assert_eq!(matches!(turn, Turn::Now { .. }), is_claimed, "{agent:?}, {situation}: {turn:?}");
            n_claimable += usize::from(is_claimed);
        }
        let offline = "delete from crm_processing_nodes";
        sqlx::query(offline).execute(&mut *world.conn().await).await.expect("offline");
    }
    let n = (PEOPLE.len() + 1) * situations.len();
    assert!((n / 5..n * 4 / 5).contains(&n_claimable), "{n_claimable} of {n} say little");
}

async fn people(world: &World) -> Vec<PersonId> {
    let mut people = Vec::new();
    for (name, minutes, is_allowed, is_served, processes) in PEOPLE {
        let sql =
            "insert into sales (tenant_id, first_name, stale_threshold_minutes, allow_remote_processing, built_in_agent, processes)
            values ($1, $2, $3, $4, $5, $6) returning id";
        let id = sqlx::query_scalar(sql)
            .bind(world.tenant_id.0)
            .bind(name)
            .bind(minutes)
            .bind(is_allowed)
            .bind(is_served)
            .bind(processes)
            .fetch_one(&mut *world.conn().await)
            .await
            .expect("a person");
        people.push(PersonId(id));
    }
    people
}

async fn activity(world: &World, owner: Option<PersonId>, source_type: &str, age_secs: i32) -> Uuid {
    let sql = "insert into activities (tenant_id, type, sales_id, raw_data, created_at)
        values ($1, 'note', $2, jsonb_build_object('source_type', $3::text, 'content', 'x'), now() - make_interval(secs => $4)) returning id";
    sqlx::query_scalar(sql)
        .bind(world.tenant_id.0)
        .bind(owner.map(|owner| owner.0))
        .bind(source_type)
        .bind(f64::from(age_secs))
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("an activity")
}

/// Everything the person's agent is handed by both functions. Nothing stays claimed.
async fn claimable(world: &World, agent: PersonId) -> BTreeSet<Uuid> {
    let mut claimed = BTreeSet::new();
    let mut tx = world.env.db.begin().await.expect("a transaction");
    loop {
        let n = claimed.len();
        for sql in
            ["select id from claim_next_pending_activity($1, 100)", "select id from claim_stale_activity($1, 100)"]
        {
            let ids: Vec<Uuid> = sqlx::query_scalar(sql).bind(agent.0).fetch_all(&mut *tx).await.expect("claims");
            claimed.extend(ids);
        }
        if claimed.len() == n {
            break;
        }
    }
    tx.rollback().await.expect("given back");
    claimed
}
