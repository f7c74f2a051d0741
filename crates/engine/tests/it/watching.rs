//! The cost of watching: pages, alerts and metrics of many tenants over a long queue read parts of indexes, never a whole table.

use std::time::{Duration, Instant};

use domain::{Caller, TenantId};
use engine::{health, items, sources};
use sqlx::Row as _;
use store::activities;
use store::memory::{self, documents, maintain};
use store::queue::{MOST_COUNTED, Page, Queue};
use testkit::{World, effects, is_slow};

/// The tables that no page may read whole.
const LONG: [&str; 6] =
    ["q_embed", "a_embed", "activities", "activity_failures", "source_documents", "document_chunks"];
const TENANTS: i64 = 100;

/// The rows of every tenant, and those of the first one, `t1`, beside.
struct Filled {
    documents: i64,
    more_documents: i64,
    activities: i64,
    more_activities: i64,
    failed: i64,
}

/// Gives a hundred tenants `n` waiting items and a tenth of that in the archive, and documents and activities that wait too. The first tenant has many
/// more of those than a page counts.
async fn fill(world: &World, n: i64) -> Filled {
    let filled = Filled {
        documents: n / 400,
        more_documents: n / 4,
        activities: n / 2_000,
        more_activities: n / 10,
        failed: n / 40,
    };
    let Filled { documents, more_documents, activities, more_activities, failed } = filled;
    let mut conn = world.conn().await;
    memory::ensure_model(&mut conn, "fast_256", 256, 0.5).await.expect("a model");
    let fill = format!(
        "set statement_timeout = 0;
         insert into tenants (id, name) select gen_random_uuid(), 't' || n from generate_series(1, {TENANTS}) n;
         insert into pgmq.q_embed (vt, message)
             select now() - n * interval '1 ms', jsonb_build_object('tenant_id', t.ids[1 + n % {TENANTS}], 'document_id', n)
             from (select array_agg(id order by id) as ids from tenants where name like 't%') t, generate_series(1, {n}) n;
         insert into pgmq.a_embed (msg_id, vt, message, headers)
             select 100000000 + n, now(), jsonb_build_object('tenant_id', t.ids[1 + n % {TENANTS}]), '{{\"state\": \"dead\"}}'
             from (select array_agg(id order by id) as ids from tenants where name like 't%') t, generate_series(1, {n} / 10) n;
         insert into connected_sources (id, tenant_id, provider, name) select gen_random_uuid(), id, 'hubspot', name from tenants where name like 't%';
         insert into source_documents (id, tenant_id, source_id, external_id, document_type, content_sha256, n_chunks, updated_at)
             select gen_random_uuid(), s.tenant_id, s.id, 'd' || n, 'note', sha256('x'), 1, now() - interval '1 day' - n * interval '1 ms'
             from generate_series(1, {documents}) n, connected_sources s;
         insert into source_documents (id, tenant_id, source_id, external_id, document_type, content_sha256, n_chunks, updated_at)
             select gen_random_uuid(), s.tenant_id, s.id, 'e' || n, 'note', sha256('x'), 1, now() - interval '1 day' - n * interval '1 ms'
             from generate_series(1, {more_documents}) n, connected_sources s where s.name = 't1';
         insert into document_chunks (id, tenant_id, document_id, ordinal, hash, occurrence, text, lang)
             select gen_random_uuid(), tenant_id, id, 0, content_sha256, 0, 'text', 'simple' from source_documents where length(external_id) < 3;
         insert into activities (tenant_id, type, raw_data)
             select id, 'note', '{{\"source_type\": \"text\"}}' from generate_series(1, {activities}) n, tenants where name like 't%';
         insert into activities (tenant_id, type, raw_data)
             select id, 'note', '{{\"source_type\": \"text\"}}' from generate_series(1, {more_activities}) n, tenants where name = 't1';
         insert into activities (tenant_id, type, raw_data, processing_status)
             select id, 'note', '{{\"source_type\": \"text\"}}', 'failed' from generate_series(1, {failed}) n, tenants where name = 't1';
         insert into activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
             select tenant_id, id, 'it failed', '{{}}' from activities where processing_status = 'failed';
         delete from pgmq.q_remember_activity;
         -- Their memory was counted ten minutes ago. Since then, one document of the first tenant has changed.
         insert into memory.tenants (tenant_id, model, maintained_at) select id, 'fast_256', now() - interval '10 minutes' from tenants where name like 't%';
         update source_documents set updated_at = now() where external_id = 'e1';
         select pg_stat_force_next_flush(); -- reported after the `analyze` below, these rows would be counted twice
         set statement_timeout = '30s'"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(fill)).execute(&mut *conn).await.expect("a long queue");
    filled
}

/// Checks that the plan of a statement reads no long table whole, whatever its values are.
async fn goes_by_indexes(conn: &mut sqlx::PgConnection, state: &str, sql: &str) {
    let sql = format!("explain (generic_plan) {sql}");
    let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).fetch_all(conn).await.expect("a plan");
    let plan = rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n");
    for table in LONG {
        assert!(!plan.contains(&format!("Seq Scan on {table}")), "{state}: reads all of {table}\n{plan}");
    }
}

/// F13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_tenants_with_a_million_items_are_watched_by_parts_of_indexes() {
    let (world, n) = (World::now().await, if is_slow() { 1_000_000 } else { 40_000 });
    let filled = fill(&world, n).await;
    let mut conn = world.conn().await;
    let ids: Vec<uuid::Uuid> = sqlx::query_scalar("select id from tenants where name like 't%' order by name limit 10")
        .fetch_all(&mut *conn)
        .await
        .expect("tenants");
    let callers: Vec<Caller> = ids.iter().map(|id| Caller::local("page", TenantId(*id), false)).collect();
    let queue = Queue::new("embed").expect("a queue");
    let mut admin = store::bench::administrator(&world.database.admin).await.expect("a connection");
    let of_all = [
        include_str!("../../../store/src/sql/memory_count.sql"),
        include_str!("../../../store/src/sql/dead_letters_count.sql"),
    ];
    let of_a_caller = [
        include_str!("../../../store/src/sql/activities_per_bucket.sql"),
        include_str!("../../../store/src/sql/activities_flow.sql"),
        include_str!("../../../store/src/sql/documents_totals.sql"),
        include_str!("../../../store/src/sql/dead_letters_count.sql"),
        include_str!("../../../store/src/sql/sources_list.sql"),
    ];
    for state in ["never analysed", "analysed"] {
        for sql in queue.page_sql().into_iter().chain(queue.watch_sql()).chain(of_all) {
            goes_by_indexes(&mut conn, state, sql).await;
        }
        let mut tx = world.env.db.begin_as(&callers[0]).await.expect("a transaction");
        for sql in of_a_caller {
            goes_by_indexes(&mut tx, state, sql).await;
        }
        tx.rollback().await.expect("rolled back");
        let analyze =
            "analyze pgmq.q_embed, pgmq.a_embed, activities, activity_failures, source_documents, document_chunks";
        sqlx::query(analyze).execute(&mut admin).await.expect("statistics");
    }

    // One of a hundred memories is counted.
    let begun = Instant::now();
    maintain::count(&mut conn).await.expect("counted");
    let mut counting = begun.elapsed();
    let counted: Vec<(String, i64)> = sqlx::query_as(
        "select t.name, m.n_documents from memory.tenants m join tenants t on t.id = m.tenant_id where m.maintained_at > now() - interval '9 minutes'",
    )
    .fetch_all(&mut *conn)
    .await
    .expect("counts");
    assert_eq!(counted, [("t1".to_owned(), filled.documents + filled.more_documents)], "others have not changed");
    for _ in 0..2 {
        let begun = Instant::now();
        maintain::count(&mut conn).await.expect("counted");
        counting = counting.min(begun.elapsed());
    }

    let tick = async || {
        let mut tx = world.env.db.begin().await.expect("a transaction");
        let tick = [serde_json::json!({ "task": "watch" })];
        Queue::new("upkeep").expect("a queue").send(&mut tx, world.tenant_id, &tick).await.expect("sent");
        tx.commit().await.expect("committed");
        let begun = Instant::now();
        world.run_lanes(effects::lanes(None)).await;
        begun.elapsed()
    };
    let first = tick().await; // it opens a hundred alerts
    let watch = tick().await.min(tick().await).min(tick().await);
    let alerts =
        "select count(distinct tenant_id) from tributary.alerts where closed_at is null and kind = 'dead_items'";
    assert_eq!(sqlx::query_scalar::<_, i64>(alerts).fetch_one(&mut *conn).await.expect("alerts"), TENANTS);

    let entry = items::lane("embed").expect("a lane");
    let page = async |caller: &Caller| {
        let begun = Instant::now();
        let home = health::overview(&world.env, caller).await.expect("Home");
        let loaded = world.env.db.read(caller, async |tx| {
            let per_minute =
                activities::count_per_bucket(tx, None, caller.tenant_id, Duration::from_secs(60), 60).await?;
            let flow = activities::flow(tx, None, caller.tenant_id).await?;
            let totals = documents::totals(tx).await?;
            documents::newest(tx, 8).await?;
            activities::unremembered(tx, caller.tenant_id, 8).await?;
            Ok((per_minute, flow, totals))
        });
        let (per_minute, flow, totals) = loaded.await.expect("what arrives");
        let watched = sources::watch(&world.env, caller, None).await.expect("sources");
        let home_took = begun.elapsed();
        let wanted = Page { limit: 50, ..Page::default() };
        let (listed, _) = items::list(&world.env, caller, entry, wanted).await.expect("items");
        let took = (home_took, begun.elapsed() - home_took);

        let embed = home.queues.iter().find(|counts| counts.lane == "embed").expect("a lane");
        assert_eq!((embed.waiting, listed.len()), ((n / TENANTS).min(MOST_COUNTED), 50));
        let is_first = caller.tenant_id == callers[0].tenant_id;
        let of_first = |more: i64| if is_first { more } else { 0 };
        let n_documents = filled.documents + of_first(filled.more_documents);
        let waiting = filled.activities + of_first(filled.more_activities);
        assert_eq!((flow.waiting, flow.failed), (waiting.min(MOST_COUNTED), of_first(MOST_COUNTED)));
        assert!(flow.today <= MOST_COUNTED && per_minute.iter().all(|bucket| bucket.n <= MOST_COUNTED), "{flow:?}");
        // The first tenant's memory has been counted, so the number of its documents is known.
        let total = if is_first { n_documents } else { n_documents.min(MOST_COUNTED) };
        assert_eq!((totals.documents, totals.pending), (total, n_documents.min(MOST_COUNTED)));
        assert_eq!(watched[0].source.n_documents, n_documents.min(MOST_COUNTED));
        took
    };
    futures_util::future::join_all(callers.iter().map(&page)).await; // sessions and plans
    let at_once = futures_util::future::join_all(callers.iter().map(&page)).await;
    let longest = |took: &[(Duration, Duration)], of: fn(&(Duration, Duration)) -> Duration| {
        took.iter().map(of).max().unwrap_or_default()
    };
    let mut alone = Vec::new();
    for caller in &callers {
        let mut best = page(caller).await;
        for _ in 0..2 {
            let took = page(caller).await;
            best = (best.0.min(took.0), best.1.min(took.1));
        }
        alone.push(best);
    }
    let depths = queue.depths(&mut conn, None).await.expect("depths");
    println!(
        "{n} items, {TENANTS} tenants: watch {first:.0?}, then {watch:.0?}; memory {counting:.0?}; ten pages at once: Home {:.0?}, items {:.0?}; \
         one by one: Home {:.0?}, items {:.0?}; depths {depths:?}",
        longest(&at_once, |took| took.0),
        longest(&at_once, |took| took.1),
        longest(&alone, |took| took.0),
        longest(&alone, |took| took.1),
    );
    let waiting = depths.iter().find(|(state, _)| *state == domain::ItemState::Waiting).map_or(0, |(_, n)| *n);
    assert!((n * 9 / 10..=n * 11 / 10).contains(&waiting), "{waiting} instead of {n}");
    if is_slow() {
        // The best of three, so that a busy moment of the machine does not count.
        let second = Duration::from_secs(1);
        assert!(watch < second && counting < second, "watch {watch:?}, memory {counting:?}");
        let tenth = Duration::from_millis(100);
        assert!(alone.iter().all(|(home, items)| *home < tenth && *items < tenth), "Home, items: {alone:?}");
    }
}
