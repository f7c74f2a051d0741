//! F10: a database clock that steps back, or another server with an earlier one.

use std::time::Duration;

use engine::memory::recall::{self, Query};
use serde_json::json;
use store::memory::Mode;
use store::{claims, gates};
use testkit::{World, wait_until};
use uuid::Uuid;

async fn found(world: &World, text: &str) -> Vec<String> {
    let query = Query { text: text.into(), k: 10, mode: Mode::Keyword, ..Query::default() };
    let caller = world.operator().await;
    let answer = Box::pin(recall::search(&world.env, &caller, &query)).await.expect("an answer");
    answer.hits.into_iter().map(|hit| hit.external_id).collect()
}

/// F10.
#[tokio::test]
async fn a_result_that_comes_after_the_clock_stepped_back_is_searchable() {
    let world = World::now().await;
    // What a clock that is ten minutes ahead has written. Then it is set right.
    let id: Uuid = sqlx::query_scalar(
        "insert into activities (tenant_id, type, raw_data, created_at, updated_at)
         values ($1, 'call', '{\"source_type\":\"text\",\"content\":\"A call about copper\"}', now() + interval '10 minutes', now() + interval '10 minutes')
         returning id",
    )
    .bind(world.tenant_id.0)
    .fetch_one(&mut *world.conn().await)
    .await
    .expect("an activity");
    world.run_upkeep().await;
    assert_eq!(found(&world, "copper").await.len(), 1, "the event itself");

    let mut versions = Vec::new();
    let mut conn = world.conn().await;
    let (_, user_id, key_id) = claims::ensure_agent(&mut conn, world.tenant_id, &["text"]).await.expect("an agent");
    for (epoch, word) in [(1, "harbour"), (2, "lighthouse")] {
        let held = "update activities
                    set processing_status = 'processing', lock_epoch = $2, locked_key = $3, locked_by = $4, locked_at = now()
                    where id = $1";
        let held = sqlx::query(held).bind(id).bind(epoch).bind(key_id.0).bind(user_id);
        held.execute(&mut *conn).await.expect("a claim");
        let result = json!({ "summary": format!("They meet at the {word}.") });
        let completed = claims::complete(&mut conn, world.tenant_id, key_id, &[(id, epoch, result)]).await;
        assert_eq!(completed.expect("completed"), [id]);
        world.run_upkeep().await;
        assert_eq!(found(&world, word).await.len(), 1, "F10: the result of claim {epoch} was lost");
        let version = "select source_version from source_documents where external_id like '%' || $1::text";
        versions.push(sqlx::query_scalar::<_, i64>(version).bind(id).fetch_one(&mut *conn).await.expect("a version"));
    }
    assert!(versions[0] < versions[1], "{versions:?}");
    assert!(found(&world, "harbour").await.is_empty(), "the older result is still found");
}

#[tokio::test]
async fn a_limit_that_was_used_up_before_the_clock_stepped_back_refills_from_now_on() {
    let world = World::now().await;
    let mut conn = world.conn().await;
    let used_up = "insert into tributary.gates (key, units, used_at) values ('provider', 0, now() + interval '1 hour')";
    sqlx::query(used_up).execute(&mut *conn).await.expect("a gate");
    let mut take = async || {
        let taken = gates::take(&mut conn, "provider", 10.0, Duration::from_secs(1), 1, Duration::ZERO).await;
        taken.expect("an answer")
    };
    assert!(take().await > Duration::ZERO, "nothing is left");
    let is_taken = wait_until(Duration::from_secs(5), async || take().await.is_zero()).await;
    assert!(is_taken, "F10: it stays used up until the old time has come");
}
