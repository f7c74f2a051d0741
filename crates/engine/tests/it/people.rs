//! People and the built-in agent, and people who are removed.

use domain::{Caller, PersonId, Role, Scope, Secret};
use engine::people::{self, Fields};
use engine::sessions::{self, Browser};
use store::claims;
use testkit::World;
use uuid::Uuid;

struct Office {
    world: World,
    caller: Caller,
}

impl Office {
    async fn new() -> Self {
        let world = World::now().await;
        let caller = world.operator().await;
        Self { world, caller }
    }

    async fn person(&self, email: &str, is_served: bool, is_shared: bool) -> PersonId {
        let new = Fields {
            email: Some(email.into()),
            built_in_agent: Some(is_served),
            allow_remote_processing: Some(is_shared),
            ..Fields::default()
        };
        PersonId(people::create(&self.world.env, &self.caller, new).await.expect("a person").id)
    }

    async fn activity(&self, owner: Option<PersonId>, minutes: i32) -> Uuid {
        let sql = "insert into activities (tenant_id, type, sales_id, raw_data, created_at)
            values ($1, 'note', $2, '{\"source_type\":\"text\",\"content\":\"x\"}', now() - make_interval(mins => $3)) returning id";
        let inserted =
            sqlx::query_scalar(sql).bind(self.world.tenant_id.0).bind(owner.map(|owner| owner.0)).bind(minutes);
        inserted.fetch_one(&mut *self.world.conn().await).await.expect("an activity")
    }

    async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a number")
    }
}

#[tokio::test]
async fn the_built_in_agent_works_at_once_for_those_who_let_it() {
    let office = Office::new().await;
    let served = office.person("served@office.test", true, true).await;
    let private = office.person("private@office.test", true, false).await;
    let usual = office.person("usual@office.test", false, true).await;
    let alone = office.person("alone@office.test", false, false).await;
    let new = office.activity(Some(served), 0).await;
    let older = office.activity(Some(private), 2).await;
    let oldest = office.activity(Some(served), 3).await;
    let everyones = office.activity(None, 5).await;
    let stale = office.activity(Some(usual), 20).await;
    office.activity(Some(usual), 10).await;
    office.activity(Some(alone), 900).await;

    let mut conn = office.world.conn().await;
    let (agent, ..) = claims::ensure_agent(&mut conn, office.world.tenant_id, &["text"]).await.expect("an agent");
    let mut claimed: Vec<Uuid> = Vec::new();
    for _ in 0..6 {
        let sql = "select id from claim_next_pending_activity($1, 1)";
        claimed.extend(
            sqlx::query_scalar::<_, Uuid>(sql).bind(agent.0).fetch_optional(&mut *conn).await.expect("a claim"),
        );
    }
    assert_eq!(claimed, [oldest, older, new, everyones, stale], "who waits longest is served first, then as others do");
    // What is its own in the one function is its own in the other.
    office.activity(Some(private), 6).await;
    let sql = "select count(*) from claim_stale_activity($1, 10)";
    let n: i64 = sqlx::query_scalar(sql).bind(agent.0).fetch_one(&mut *conn).await.expect("claims");
    assert_eq!(n, 2, "the private one's, and the usual one's that is older than five minutes");

    // To a person's agent others' flags say nothing.
    office.activity(Some(served), 1).await;
    let sql = "select count(*) from claim_next_pending_activity($1, 10)";
    let n: i64 = sqlx::query_scalar(sql).bind(usual.0).fetch_one(&mut *conn).await.expect("claims");
    assert_eq!(n, 0);
}

#[tokio::test]
async fn a_person_with_very_many_activities_is_removed_and_again_is_not_found() {
    let office = Office::new().await;
    let ann = office.person("ann@office.test", false, true).await;
    sqlx::query(
        "insert into activities (tenant_id, type, sales_id, raw_data)
         select $1, 'note', $2, '{\"source_type\":\"text\",\"content\":\"x\"}' from generate_series(1, 10100)",
    )
    .bind(office.world.tenant_id.0)
    .bind(ann.0)
    .execute(&mut *office.world.conn().await)
    .await
    .expect("activities");
    let (env, caller) = (&office.world.env, &office.caller);
    assert_eq!(people::owned(env, caller, ann).await.expect("counts").activities, 10_000, "counting stops");
    people::remove(env, caller, ann).await.expect("removed");
    assert_eq!(office.number("select count(*) from activities where sales_id is null").await, 10_100);
    assert!(people::remove(env, caller, ann).await.is_err_and(|error| error.to_string() == "there is no such person"));
}

#[tokio::test]
async fn nobody_removes_themselves_or_the_built_in_agents_person() {
    let office = Office::new().await;
    let ann = office.person("ann@office.test", false, true).await;
    let env = &office.world.env;
    let herself = Caller { person_id: Some(ann), scopes: vec![Scope::Service], ..office.caller.clone() };
    let refused = people::remove(env, &herself, ann).await.expect_err("herself");
    assert_eq!(refused.to_string(), "nobody removes themselves: somebody else has to do it");
    let made = claims::ensure_agent(&mut *office.world.conn().await, office.world.tenant_id, &["text"]).await;
    let agent = made.expect("an agent").0;
    for done in [
        people::remove(env, &office.caller, agent).await.map(drop),
        people::change(env, &office.caller, agent, Fields::default()).await.map(drop),
        people::get(env, &office.caller, agent).await.map(drop),
    ] {
        assert_eq!(done.expect_err("the agent's").to_string(), "there is no such person");
    }
    assert_eq!(people::list(env, &office.caller).await.expect("people").len(), 1);
}

#[tokio::test]
async fn a_persons_session_lasts_while_it_is_used_and_has_the_role_of_the_moment() {
    let world = World::new().await;
    let (env, owner) = (&world.env, world.operator().await);
    let new = Fields { email: Some("ann@office.test".into()), first_name: Some("Ann".into()), ..Fields::default() };
    let ann = PersonId(people::create(env, &owner, new).await.expect("a person").id);
    let link = sessions::invite(env, &owner, ann).await.expect("a link");
    let days = |n| chrono::TimeDelta::days(n);
    assert_eq!(link.expires_at, env.clock.now() + days(3));
    let once = Secret::new(link.url.reveal().split_once("#once=").expect("a secret").1);
    let browser = Browser { device: Some("Firefox on Linux".into()), address: Some("192.0.2.1".into()) };
    let begun = sessions::redeem_link(env, &once, &browser).await.expect("an answer").expect("a session");
    assert!(begun.is_persons);
    let caller = async |address: &str| {
        let mut conn = world.conn().await;
        let found = store::sessions::caller(&mut conn, env.clock.sql(), &begun.secret, Some(address)).await;
        found.expect("an answer")
    };
    let she = caller("192.0.2.2").await.expect("Ann");
    assert_eq!((she.person_id, she.is_signed_in, she.key_name.as_str()), (Some(ann), true, "Ann"));
    assert_eq!(she.scopes, Role::Member.scopes());
    let change = Fields { role: Some(Role::ReadOnly), ..Fields::default() };
    people::change(env, &owner, ann, change).await.expect("changed");
    assert_eq!(caller("192.0.2.2").await.expect("Ann").scopes, Role::ReadOnly.scopes());
    // Every 29 days she looks in: that goes on for a year from its beginning.
    let began = "update tributary.sessions set created_at = $1 where kind = 'session'";
    sqlx::query(began).bind(env.clock.now()).execute(&mut *world.conn().await).await.expect("its beginning");
    let mut lasted = 0;
    while lasted < 500 && caller("192.0.2.3").await.is_some() {
        env.clock.advance(days(29));
        lasted += 29;
    }
    assert!((365..=395).contains(&lasted), "it lasted {lasted} days");
    let link = sessions::invite(env, &owner, ann).await.expect("a link");
    let once = Secret::new(link.url.reveal().split_once("#once=").expect("a secret").1);
    let begun = sessions::redeem_link(env, &once, &browser).await.expect("an answer").expect("a session");
    let listed = sessions::list(env, &owner, None, None).await.expect("sessions");
    assert_eq!((listed.len(), listed[0].whose(), listed[0].address.as_deref()), (1, "Ann".into(), Some("192.0.2.1")));
    env.clock.advance(days(31));
    let mut conn = world.conn().await;
    let idle = store::sessions::caller(&mut conn, env.clock.sql(), &begun.secret, None).await.expect("an answer");
    assert!(idle.is_none(), "nobody used it for a month");
    assert_eq!(sessions::list(env, &owner, None, None).await.expect("sessions").len(), 0);
}
