//! An agent's key sees those activities of its tenant that it may process, and no others.

use std::collections::HashSet;

use domain::{Caller, Scope};
use serde_json::json;
use store::rest::{self, Condition, Operator, Table, Wanted};
use uuid::Uuid;

use crate::claims::Office;

/// The activities that a caller gets when it asks for all of them, as the REST API asks, and the ones that it finds by their id.
async fn seen(office: &Office, caller: &Caller) -> HashSet<Uuid> {
    let table = Table::find("activities").expect("a table");
    let mut tx = office.world.env.db.begin_as(caller).await.expect("a transaction");
    let rows = rest::select(&mut tx, table, &Wanted { limit: 100, ..Wanted::default() }).await.expect("rows");
    let seen: HashSet<Uuid> =
        rows.iter().map(|row| row["id"].as_str().expect("an id").parse().expect("a uuid")).collect();
    let every: Vec<Uuid> =
        sqlx::query_scalar("select id from activities").fetch_all(&mut *office.world.conn().await).await.expect("ids");
    for id in every {
        let found = store::activities::get(&mut tx, caller.tenant_id, domain::ActivityId(id)).await.expect("an answer");
        assert_eq!(found.is_some(), seen.contains(&id), "a recording is served to callers that see its activity");
    }
    seen
}

/// S25.
#[tokio::test]
async fn an_agent_sees_its_persons_activities_everyones_and_those_that_are_open() {
    let office = Office::new(&["ann", "bob", "hasty", "private"]).await;
    office.set("private", "update sales set allow_remote_processing = false where id = $1").await;
    office.set("hasty", "update sales set stale_threshold_minutes = 1 where id = $1").await;
    // Bob's own agent completed one, failed at another, and holds a third. All are old enough for others, and none waits.
    let done = json!({ "processing_status": "completed", "processed_data": { "summary": "done" } });
    let failed =
        json!({ "processing_status": "failed", "metadata": { "error": { "type": "LLMError", "message": "away" } } });
    let bob = office.device("bob", &[Scope::Agent]).await;
    let mut bobs = HashSet::new();
    for ending in [Some(&done), Some(&failed), None] {
        let id = office.activity(Some("bob"), "text", 90.0).await;
        assert_eq!(office.claim_as(&bob).await, [(id, 1)]);
        if let Some(ending) = ending {
            assert_eq!(office.write(&bob, id, ending.clone()).await.expect("an end").len(), 1);
        }
        bobs.insert(id);
    }
    let own = office.activity(Some("ann"), "text", 0.0).await;
    let everyones = office.activity(None, "text", 0.0).await;
    let bobs_new = office.activity(Some("bob"), "url", 4.0).await;
    let bobs_old = office.activity(Some("bob"), "url", 6.0).await;
    let hastys = office.activity(Some("hasty"), "text", 2.0).await;
    let privates = office.activity(Some("private"), "url", 900.0).await;
    let ann = office.device("ann", &[Scope::Agent]).await;
    let mut all = HashSet::from([own, everyones, bobs_new, bobs_old, hastys, privates]);
    all.extend(&bobs);
    assert_eq!(seen(&office, &ann).await, HashSet::from([own, everyones, bobs_old, hastys]));
    assert_eq!(
        seen(&office, &office.device("private", &[Scope::Agent]).await).await.len(),
        4,
        "its own, everyone's, open ones"
    );
    for scopes in [&[Scope::Agent, Scope::Read][..], &[Scope::Service]] {
        assert_eq!(seen(&office, &office.device("ann", scopes).await).await, all, "{scopes:?} reads its tenant");
    }
    // What it does not see it cannot write either. What it claims it completes by the id alone.
    assert_eq!(office.write(&ann, privates, done.clone()).await, Ok(vec![]));
    let mut claimed = HashSet::new();
    while let [(id, _)] = office.claim_as(&ann).await[..] {
        claimed.insert(id);
        assert_eq!(office.write(&ann, id, done.clone()).await.expect("completed").len(), 1, "a claimed one");
    }
    assert_eq!(claimed, HashSet::from([own, everyones, hastys]), "others' come after their owner's patience");
    // Of other people's work, what a key completed stays in its sight, and in nobody else's.
    assert_eq!(seen(&office, &ann).await, HashSet::from([own, everyones, bobs_old, hastys]));
    let anns_other = office.device("ann", &[Scope::Agent]).await;
    assert_eq!(seen(&office, &anns_other).await, HashSet::from([own, everyones, bobs_old]));
    bobs.extend([everyones, bobs_new, bobs_old]);
    assert_eq!(seen(&office, &bob).await, bobs, "his own, completed or not, and everyone's");
}

/// I3, S25.
#[tokio::test]
async fn an_agent_that_lost_its_claim_is_told_so_although_it_no_longer_sees_the_activity() {
    let office = Office::new(&["ann", "bob", "eve"]).await;
    let id = office.activity(Some("bob"), "text", 20.0).await;
    let (ann, eve) = (office.device("ann", &[Scope::Agent]).await, office.device("eve", &[Scope::Agent]).await);
    assert_eq!(seen(&office, &eve).await, HashSet::from([id]));
    assert_eq!(office.claim_as(&ann).await, [(id, 1)]);
    assert_eq!(seen(&office, &ann).await, HashSet::from([id]));
    assert_eq!(seen(&office, &eve).await, HashSet::new(), "another agent processes it");
    office.run("update activities set locked_at = now() - interval '6 minutes'").await;
    assert_eq!(office.number("select unlock_stale_locks()::int8").await, 1);
    assert_eq!(office.claim_as(&eve).await, [(id, 2)]);
    assert_eq!(seen(&office, &ann).await, HashSet::new(), "it is in other hands");

    let table = Table::find("activities").expect("a table");
    let is_there = async |caller: &Caller, id: Uuid| {
        let column = table.column("id").expect("a column");
        let by_id = Condition { column, is_not: false, operator: Operator::Eq, values: vec![id.to_string()] };
        let mut tx = office.world.env.db.begin_as(caller).await.expect("a transaction");
        rest::is_there(&mut tx, table, &[by_id]).await.expect("an answer")
    };
    let late = json!({ "processing_status": "completed", "processed_data": { "summary": "late" } });
    assert_eq!(office.write(&ann, id, late).await, Ok(vec![]), "I3");
    assert!(is_there(&ann, id).await, "I3: no row would look like success");
    assert!(!is_there(&ann, Uuid::now_v7()).await);
    let elsewhere = office.world.other_tenant("elsewhere").await;
    let (stranger, _) = office.world.caller(elsewhere, &[Scope::Agent]).await;
    assert!(!is_there(&stranger, id).await, "S17");
}
