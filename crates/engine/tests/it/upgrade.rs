//! Upgrades: a database of schema 11, whose functions were made by its migrations, becomes today's with its data and under a running process.

use std::time::Duration;

use chrono::{DateTime, Utc};
use engine::lanes;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use store::functions::{self, FUNCTIONS, Function};
use store::migrate::{self, Applied, MIGRATIONS, Migration};
use testkit::cluster::Database;
use testkit::{Cluster, World};
use uuid::Uuid;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fixtures/schema-11");

/// The migrations of schema 11 as they were: today's files where nothing has changed, else the fixtures. (The upgrade refuses a fixture whose hash
/// is not an accepted one.)
fn migrations_of_schema_11() -> Vec<Migration> {
    let as_it_was = |migration: &Migration| {
        if migration.earlier.is_empty() {
            return *migration;
        }
        let text = std::fs::read_to_string(format!("{FIXTURES}/{}.sql", migration.name)).expect("a fixture");
        Migration { sql: text.leak(), earlier: &[], ..*migration }
    };
    MIGRATIONS[..11].iter().map(as_it_was).collect()
}

/// A database of schema 11 with rows of every kind.
async fn old_database(cluster: &Cluster, name: &str) -> Database {
    migrate::create_database(&cluster.running().admin.database("postgres"), name, None).await.expect("a database");
    let database = cluster.existing(name);
    let lanes: Vec<&str> = lanes::ALL.iter().map(|lane| lane.name).collect();
    let login = database.login.login();
    migrate::run_lists(&database.admin, login, &lanes, &migrations_of_schema_11(), &[]).await.expect("schema 11");
    let data = std::fs::read_to_string(format!("{FIXTURES}/data.sql")).expect("a fixture");
    let mut owner = session(&database, "tributary_owner").await;
    let mut admin = store::bench::administrator(&database.admin).await.expect("the superuser");
    for lane in &lanes {
        let as_it_was =
            format!("drop index pgmq.q_{lane}_share_idx; create index q_{lane}_vt_idx on pgmq.q_{lane} (vt)");
        sqlx::raw_sql(AssertSqlSafe(as_it_was)).execute(&mut admin).await.expect("the index of schema 11");
    }
    sqlx::raw_sql(AssertSqlSafe(data)).execute(&mut owner).await.expect("rows");
    database
}

async fn session(database: &Database, role: &str) -> PgConnection {
    let mut conn = PgConnection::connect(&database.url).await.expect("a connection");
    sqlx::raw_sql(AssertSqlSafe(format!("set role {role}"))).execute(&mut conn).await.expect("a role");
    conn
}

/// Every table that is ours, with its columns: those that a migration removes or changes on purpose are left out.
async fn tables(conn: &mut PgConnection) -> Vec<(String, String)> {
    sqlx::query_as(
        "select c.oid::regclass::text, string_agg(quote_ident(a.attname), ', ' order by a.attnum)
         from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
         where n.nspname in ('public', 'tributary', 'memory', 'pgmq') and c.relkind in ('r', 'p') and not a.attisdropped
             and c.relname not in ('migrations', 'functions', 'meta')
             and (c.relname, a.attname) not in (('document_chunks', 'tsv'), ('models', 'weight'))
         group by c.oid order by 1",
    )
    .fetch_all(conn)
    .await
    .expect("tables")
}

/// Number and hash of the rows of these tables, by these columns.
async fn rows(conn: &mut PgConnection, tables: &[(String, String)]) -> Vec<(String, i64, Option<String>)> {
    let mut rows = Vec::new();
    for (table, columns) in tables {
        let sql = format!(
            "select count(*), md5(string_agg(t::text, '|' order by t::text)) from (select {columns} from {table}) t"
        );
        let (n, hash) = sqlx::query_as(AssertSqlSafe(sql)).fetch_one(&mut *conn).await.expect("rows");
        rows.push((table.clone(), n, hash));
    }
    rows
}

/// Runs the statements that a process of schema 11 runs, and takes them back. Returns what they answered.
async fn old_statements(conn: &mut PgConnection) -> Vec<String> {
    let mut tx = conn.begin().await.expect("a transaction");
    let mut said = Vec::new();
    for sql in ["select public.unlock_stale_locks()", "select public.reset_stale_locks()"] {
        let n: i32 = sqlx::query_scalar(sql).fetch_one(&mut *tx).await.expect(sql);
        said.push(format!("{sql}: {n}"));
    }
    let retried: i32 = sqlx::query_scalar("select tributary.retry_failed($1)")
        .bind(None::<DateTime<Utc>>)
        .fetch_one(&mut *tx)
        .await
        .expect("retry_failed");
    said.push(format!("retried {retried}"));

    let [tenant, channel, key, event] =
        [1, 3, 9, 4].map(|n: u128| Uuid::from_u128(n << 124 | 0x7000_8000_0000_0000_0001));
    let insert = std::fs::read_to_string(format!("{FIXTURES}/statements/activity_insert.sql")).expect("a fixture");
    let inserted: Vec<Uuid> = sqlx::query_scalar(AssertSqlSafe(insert))
        .bind([Uuid::from_u128(7), Uuid::from_u128(8)])
        .bind([tenant; 2])
        .bind(["note"; 2])
        .bind(["inbound"; 2])
        .bind([Some(1_i64); 2])
        .bind([r#"{"source_type": "text", "content": "comes now"}"#; 2])
        .bind([r#"{"from": "+14155550100"}"#; 2])
        .bind([channel; 2])
        .bind(["a", "b"]) // the first is a redelivery
        .bind([None::<&str>; 2])
        .bind([vec![0_u8; 32], vec![0; 32]])
        .bind([vec![0_u8; 2], vec![0; 2]])
        .bind([None::<&str>; 2])
        .fetch_all(&mut *tx)
        .await
        .expect("an insert");
    said.push(format!("inserted {inserted:?}, not {event}"));
    let of: Option<i64> = sqlx::query_scalar("select contact_id from public.activities where id = $1")
        .bind(Uuid::from_u128(8))
        .fetch_one(&mut *tx)
        .await
        .expect("a row");
    said.push(format!("it is of contact {of:?}"));

    let claims = serde_json::json!({ "tenant_id": tenant, "sales_id": 1, "key_id": key, "scopes": ["agent"] });
    sqlx::query("select set_config('request.jwt.claims', $1, true)")
        .bind(claims.to_string())
        .execute(&mut *tx)
        .await
        .expect("claims");
    for sql in [
        "select id, lock_epoch from public.claim_next_pending_activity(null, $1, $2)",
        "select id, lock_epoch from public.claim_stale_activity(null, $1, $2)",
    ] {
        let claimed: Vec<(Uuid, i32)> =
            sqlx::query_as(sql).bind(1).bind(["text", "url"]).fetch_all(&mut *tx).await.expect(sql);
        said.push(format!("claimed {claimed:?}"));
    }
    for sql in [
        "select id, lock_epoch from public.claim_next_pending_activity(1, 1)",
        "select id, lock_epoch from public.claim_stale_activity(p_limit => 5)",
    ] {
        let claimed: Vec<(Uuid, i32)> = sqlx::query_as(sql).fetch_all(&mut *tx).await.expect(sql);
        said.push(format!("claimed {claimed:?}"));
    }
    let complete =
        std::fs::read_to_string(format!("{FIXTURES}/statements/activities_complete.sql")).expect("a fixture");
    let completed: Vec<Uuid> = sqlx::query_scalar(AssertSqlSafe(complete))
        .bind(tenant)
        .bind(key)
        .bind([Uuid::from_u128(8)])
        .bind([1])
        .bind([serde_json::json!({ "summary": "done" })])
        .fetch_all(&mut *tx)
        .await
        .expect("a result");
    said.push(format!("completed {completed:?}"));
    let hits: Vec<(Uuid, String)> =
        sqlx::query_as("select document_id, how from memory.search('inv 2041 pallets', '[1,0,0]', 'test_3')")
            .fetch_all(&mut *tx)
            .await
            .expect("a search");
    said.push(format!("found {hits:?}"));
    tx.rollback().await.expect("taken back");
    said
}

/// F35.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_schema_11_is_upgraded_with_its_data_under_a_running_process() {
    for cluster in [Cluster::private().await, Cluster::private_16().await] {
        let old = old_database(&cluster, "upgraded").await;
        // One session all the way: its statements stay prepared.
        let mut process = session(&old, "service_role").await;
        let mut admin = store::bench::administrator(&old.admin).await.expect("the superuser");
        let answers = old_statements(&mut process).await;
        assert!(answers.len() == 11 && !answers.iter().any(|answer| answer.contains("[]")), "{answers:#?}");
        let tables = tables(&mut admin).await;
        let data = rows(&mut admin, &tables).await;

        // Two new processes start at once. One builds indexes while the other one waits.
        let lanes: Vec<&str> = lanes::ALL.iter().map(|lane| lane.name).collect();
        let upgrade = || migrate::run(&old.admin, old.login.login(), &lanes);
        let (one, two) = tokio::join!(upgrade(), upgrade());
        let (one, two) = (one.expect("migrated"), two.expect("migrated"));
        assert!(one.is_empty() != two.is_empty(), "both or none did it: {one:?}, {two:?}");
        let times: Vec<String> = sqlx::query_scalar(
            "select c.relname::text from pg_index i join pg_class c on c.oid = i.indexrelid
             where i.indisvalid and (c.relname like 'q\\_%\\_share\\_idx' or c.relname like 'q\\_%\\_vt\\_idx') order by 1",
        )
        .fetch_all(&mut admin)
        .await
        .expect("indexes");
        let mut shares: Vec<String> = lanes.iter().map(|lane| format!("q_{lane}_share_idx")).collect();
        shares.sort();
        assert_eq!(times, shares, "the index of claims, and no other one on time");

        let database = cluster.database("upgraded").await;
        assert_eq!(rows(&mut admin, &tables).await, data, "rows changed");
        assert_eq!(old_statements(&mut process).await, answers, "the old process is answered as before");

        let expiring: Vec<String> =
            sqlx::query_scalar("select name from tributary.api_keys where expires_at is not null")
                .fetch_all(&mut admin)
                .await
                .expect("keys");
        assert_eq!(
            expiring,
            ["frame https://crm.test"],
            "S25: a key made for a frame lasts for ever, or another one does not"
        );

        let world = World::with(database, domain::Clock::System).await;
        assert!(migrate::has_functions(&mut *world.conn().await).await.expect("an answer"));
        let current: i64 = sqlx::query_scalar("select count(*) from tributary.functions where is_current")
            .fetch_one(&mut *world.conn().await)
            .await
            .expect("a count");
        assert_eq!(current, FUNCTIONS.len() as i64);
        world.run_upkeep().await;
    }
}

/// Functions that a table, a policy or the migrations themselves need.
const IN_MIGRATIONS: [&str; 4] = ["tributary.claims", "tributary.fold", "tributary.protect", "tributary.tenant"];

#[tokio::test]
async fn every_function_view_and_trigger_comes_from_one_file() {
    let world = World::new().await;
    let mut conn = world.conn().await;
    let mut made: Vec<String> = sqlx::query_scalar(
        "select n.nspname || '.' || p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
         where n.nspname in ('public', 'tributary', 'memory')
             and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
         union all select schemaname || '.' || viewname from pg_views where schemaname in ('public', 'tributary', 'memory')",
    )
    .fetch_all(&mut *conn)
    .await
    .expect("the catalog");
    made.sort();
    let mut files: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).chain(IN_MIGRATIONS).collect();
    files.sort_unstable();
    assert_eq!(made, files, "each once, and nothing else");
    let triggers: Vec<String> = sqlx::query_scalar(
        "select t.tgname::text from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
         where not t.tgisinternal and n.nspname in ('public', 'tributary', 'memory')",
    )
    .fetch_all(&mut *conn)
    .await
    .expect("the catalog");
    for trigger in triggers {
        let made_by =
            FUNCTIONS.iter().filter(|(_, sql)| sql.contains(&format!("create or replace trigger {trigger} ")));
        assert_eq!(made_by.count(), 1, "{trigger}");
    }
}

/// The functions of another binary, which differ in one file.
pub fn edited(name: &str) -> Vec<Function> {
    let edit = |function: &Function| match function.0 == name {
        true => (function.0, &*format!("{}-- edited\n", function.1).leak()),
        false => *function,
    };
    FUNCTIONS.iter().map(edit).collect()
}

async fn migrate_with(database: &Database, migrations: &[Migration], functions: &[Function]) -> Applied {
    let login = database.login.login();
    migrate::run_lists(&database.admin, login, &["upkeep"], migrations, functions).await.expect("migrated")
}

#[tokio::test]
async fn a_function_is_applied_when_its_text_has_changed_and_only_then() {
    let world = World::new().await;
    let database = &world.database;
    assert_eq!(migrate_with(database, MIGRATIONS, FUNCTIONS).await, Applied::default(), "nothing has changed");
    let newer = edited("tributary.party");
    let applied = migrate_with(database, MIGRATIONS, &newer).await;
    assert_eq!(applied.functions, ["tributary.party"]);
    assert!(migrate_with(database, MIGRATIONS, &newer).await.is_empty(), "once");
    assert!(
        functions::are_applied(&mut *world.conn().await).await.expect("an answer"),
        "our process may start where newer functions are in force"
    );
    assert_eq!(migrate_with(database, MIGRATIONS, FUNCTIONS).await.functions, ["tributary.party"], "and back");

    let coming = Migration { name: "0099_coming", sql: "select 1", earlier: &[] };
    let applied = migrate_with(database, &[MIGRATIONS, &[coming]].concat(), &newer).await;
    assert_eq!((applied.migrations.len(), applied.functions.len()), (1, 1));
    assert!(migrate_with(database, MIGRATIONS, FUNCTIONS).await.is_empty(), "a newer schema keeps its functions");
    assert!(migrate::has_functions(&mut *world.conn().await).await.expect("an answer"));

    let mut owner = session(database, "tributary_owner").await;
    sqlx::raw_sql("delete from tributary.migrations where name = '0099_coming'; delete from tributary.functions where name = 'tributary.party'")
        .execute(&mut owner)
        .await
        .expect("as before the upgrade");
    assert!(!migrate::has_functions(&mut *world.conn().await).await.expect("an answer"), "it waits for its functions");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_whose_table_is_in_use_is_replaced_when_it_is_free() {
    let world = World::now().await;
    let insert = "insert into public.contacts (tenant_id, email) values ($1, $2)";
    let mut holder = world.env.db.begin().await.expect("a transaction");
    sqlx::query(insert).bind(world.tenant_id.0).bind("held@x.test").execute(&mut *holder).await.expect("a contact");
    let database = world.database.clone();
    let migrating =
        tokio::spawn(async move { migrate_with(&database, MIGRATIONS, &edited("tributary.keep_contact_keys")).await });
    // Writers queue up behind the waiting migration: for half a second at most, then it gives way.
    let begun = std::time::Instant::now();
    for n in 0..20 {
        let email = format!("{n}@x.test");
        sqlx::query(insert)
            .bind(world.tenant_id.0)
            .bind(email)
            .execute(&mut *world.conn().await)
            .await
            .expect("a contact");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "writers stood still behind a waiting migration");
    assert!(!migrating.is_finished(), "the migration did not meet the lock");
    holder.commit().await.expect("released");
    assert_eq!(migrating.await.expect("no panic").functions, ["tributary.keep_contact_keys"]);
    let keys: i64 = sqlx::query_scalar("select count(*) from public.contact_keys")
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("keys");
    assert_eq!(keys, 21);
}

/// F35.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_that_are_there_need_no_lock_on_a_hot_queue_and_missing_ones_are_added_when_it_is_free() {
    let world = World::now().await;
    let migrate = || {
        let database = world.database.clone();
        tokio::spawn(async move {
            let login = database.login.login();
            migrate::run_lists(&database.admin, login, &["ingestion_queue"], MIGRATIONS, FUNCTIONS).await
        })
    };
    let hot = async || {
        let mut tx = world.env.db.begin().await.expect("a transaction");
        let lock = "set local idle_in_transaction_session_timeout = 0; lock table pgmq.q_ingestion_queue in row exclusive mode";
        sqlx::raw_sql(lock).execute(&mut *tx).await.expect("a writer's lock");
        tx
    };
    let held = hot().await;
    let migrated = tokio::time::timeout(Duration::from_secs(20), migrate()).await;
    migrated.expect("it waits for a lock that it does not need").expect("no panic").expect("migrated");
    held.commit().await.expect("released");

    let mut admin = store::bench::administrator(&world.database.admin).await.expect("a connection");
    sqlx::raw_sql("drop trigger job_sent on pgmq.q_ingestion_queue").execute(&mut admin).await.expect("dropped");
    let (held, migrating) = (hot().await, migrate());
    let waits = "select count(*) from pg_stat_activity where datname = current_database()
                 and application_name = 'tributary migrate' and wait_event_type = 'Lock'";
    for (wanted, otherwise) in [(1, "it has not come to the trigger"), (0, "its first try does not give way")] {
        let is_so = testkit::wait_until(Duration::from_secs(20), async || {
            sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut admin).await.is_ok_and(|n| n == wanted)
        });
        assert!(is_so.await, "{otherwise}");
    }
    assert!(!migrating.is_finished(), "it did not try again");
    held.commit().await.expect("released");
    migrating.await.expect("no panic").expect("migrated");
    let hooks = "select count(*) from pg_trigger where tgname in ('job_sent', 'job_archived') and not tgisinternal";
    assert_eq!(sqlx::query_scalar::<_, i64>(hooks).fetch_one(&mut admin).await.expect("hooks"), 2);
}
