//! Activities as agents see them: who is handed what, in which order, and what becomes of work whose agent went silent.

use std::collections::HashMap;

use domain::PersonId;
use store::people;
use testkit::World;
use uuid::Uuid;

/// A tenant with people; times are ages in minutes.
struct Office {
    world: World,
    people: HashMap<&'static str, PersonId>,
}

impl Office {
    async fn new(names: &[&'static str]) -> Self {
        let world = World::now().await;
        let mut people = HashMap::new();
        for name in names {
            let email = format!("{name}@office.test");
            let person = people::ensure(&mut *world.conn().await, world.tenant_id, &email).await.expect("a person");
            people.insert(*name, person);
        }
        Self { world, people }
    }

    async fn set(&self, who: &str, what: &'static str) {
        let changed = sqlx::query(what).bind(self.people[who].0).execute(&mut *self.world.conn().await).await;
        assert_eq!(changed.expect("a change").rows_affected(), 1);
    }

    async fn activity(&self, owner: Option<&str>, source_type: &str, minutes: f64) -> Uuid {
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

    async fn number(&self, sql: &'static str) -> i64 {
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
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_claim_at_once_never_share_an_activity() {
    let office = Office::new(&["ann", "bob", "eve", "joe"]).await;
    for n in 0..120 {
        let owner = [None, Some("ann"), Some("bob")][n % 3];
        office.activity(owner, "text", 20.0 + n as f64).await;
    }
    let claimers = (0..8).map(|nth| {
        let (office, who) = (&office, ["ann", "bob", "eve", "joe"][nth % 4]);
        async move {
            let mut mine = Vec::new();
            loop {
                let function = if nth % 2 == 0 { NEXT } else { STALE };
                let claimed = office.claims(function, who, 1 + nth as i32 % 3).await;
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|(id, _)| id));
            }
        }
    });
    let mut all: Vec<Uuid> = futures_util::future::join_all(claimers).await.concat();
    assert_eq!(all.len(), 120);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 120, "an activity was handed out twice");
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
