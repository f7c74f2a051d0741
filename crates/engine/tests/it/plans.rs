//! The plans of the hot statements, as PostgreSQL explains them: by their index, on a table that was never analysed and on one that was.

use sqlx::Executor as _;
use store::mail::reading::{self, Filter, Wanted};
use testkit::World;

/// The generic plan of a prepared statement.
async fn plan(conn: &mut sqlx::PgConnection, sql: &str) -> String {
    use sqlx::Row as _;
    let sql = format!("explain (generic_plan) {sql}");
    let rows = conn.fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(sql))).await.expect("a plan");
    rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n")
}

/// F13.
#[tokio::test]
async fn hot_statements_go_by_their_index_before_and_after_the_first_analyze() {
    let world = World::now().await;
    let mut conn = world.conn().await;
    let fill = "
        insert into connected_sources (id, tenant_id, provider, name) select gen_random_uuid(), id, 'channel', 'c' from tenants;
        insert into source_documents (id, tenant_id, source_id, external_id, document_type, content_sha256)
            select gen_random_uuid(), s.tenant_id, s.id, 'd' || n, 'note', sha256(n::text::bytea) from connected_sources s, generate_series(1, 3000) n;
        insert into activities (tenant_id, type, raw_data, processing_status)
            select id, 'note', '{\"source_type\":\"text\"}', case when n % 100 = 0 then 'raw' else 'completed' end from tenants, generate_series(1, 3000) n;
        insert into pgmq.q_embed (vt, message) select now() + n * interval '1 s', '{}' from generate_series(-50, 3000) n;";
    conn.execute(sqlx::raw_sql(fill)).await.expect("rows");
    let queue = store::queue::Queue::new("embed").expect("a queue");
    let [counts, list] = queue.page_sql();
    let hot: [(&str, &str, &[&str]); 10] = [
        ("counts of a page", counts, &["q_embed_share_idx"]),
        ("items of a page", list, &["q_embed_share_idx", "q_embed_pkey"]),
        ("look", include_str!("../../../store/src/sql/documents_look.sql"), &["source_documents_external_key"]),
        ("lock", include_str!("../../../store/src/sql/documents_lock.sql"), &["source_documents_pkey"]),
        ("claim", queue.claim_sql(), &["q_embed_share_idx", "q_embed_pkey"]),
        (
            "tenants",
            include_str!("../../../store/src/sql/activities_tenants.sql"),
            &["Index Only Scan using activities_"],
        ),
        ("what waits", include_str!("../../../store/src/sql/waiting_oldest.sql"), &["activities_raw_idx"]),
        ("how fast it went", include_str!("../../../store/src/sql/waiting_paces.sql"), &["activities_created_idx"]),
        ("what is in hands", include_str!("../../../store/src/sql/nodes_list.sql"), &["activities_locked_idx"]),
        ("one activity", include_str!("../../../store/src/sql/activity_to_remember.sql"), &["activities_"]),
    ];
    for state in ["never analysed", "analysed"] {
        for (name, sql, indexes) in hot {
            let plan = plan(&mut conn, sql).await;
            for index in indexes {
                assert!(plan.contains(index), "{name}, {state}: not by {index}\n{plan}");
            }
            let is_scanned = ["source_documents", "activities", "q_embed"]
                .iter()
                .any(|t| plan.contains(&format!("Seq Scan on {t}")));
            assert!(!is_scanned, "{name}, {state}: reads a whole table\n{plan}");
        }
        conn.execute("analyze source_documents, activities, pgmq.q_embed").await.expect("statistics");
    }
}

/// F13. In the role that runs it: row security keeps conditions that may leak out of an index.
#[tokio::test]
async fn mail_is_listed_by_its_index_also_far_down() {
    let world = World::now().await;
    let (caller, _) = world.caller(world.tenant_id, &[domain::Scope::Read]).await;
    let fill = "
        insert into connected_sources (id, tenant_id, provider, name) select gen_random_uuid(), id, 'outlook', 'box' from tenants;
        insert into source_documents (id, tenant_id, source_id, external_id, document_type, content_sha256, source_created_at, thread_id)
            select gen_random_uuid(), s.tenant_id, s.id, 'message:' || n, case when n % 3 = 0 then 'outlook.attachment' else 'outlook.message' end,
                sha256(n::text::bytea), now() - n * interval '1 min', 't' || n / 4
            from connected_sources s, generate_series(1, 3000) n;";
    world.conn().await.execute(sqlx::raw_sql(fill)).await.expect("letters");
    let place = reading::Position { created_at: chrono::Utc::now(), id: uuid::Uuid::nil() };
    let page = Wanted { filter: Filter::default(), before: Some(place), limit: 50 };
    let of_mailbox = Filter { source_id: Some(domain::SourceId::new()), ..Filter::default() };
    let sifted = Filter { text: Some("x"), addresses: Some("y"), has_files: true, ..Filter::default() };
    for state in ["never analysed", "analysed"] {
        for (name, wanted, index) in [
            ("all", page, "source_documents_letters_idx"),
            ("a mailbox", Wanted { filter: of_mailbox, ..page }, "source_documents_mailbox_idx"),
            ("sifted", Wanted { filter: sifted, ..page }, "source_documents_letters_idx"),
        ] {
            let mut tx = world.env.db.begin_as(&caller).await.expect("a transaction");
            let plan = plan(&mut tx, &reading::list_sql(wanted)).await;
            assert!(plan.contains(index), "{name}, {state}: not by {index}\n{plan}");
            let conditions = plan.lines().filter(|line| line.contains("Index Cond"));
            assert!(conditions.clone().any(|line| line.contains("ROW(")), "{name}, {state}: from the top\n{plan}");
        }
        world.conn().await.execute("analyze source_documents").await.expect("statistics");
    }
}

/// F13.
#[tokio::test]
async fn papers_are_found_by_what_they_say_by_an_index() {
    let world = World::now().await;
    // The functions that search run as their owner.
    let mut conn = store::bench::administrator(&world.database.admin).await.expect("the owner");
    let fill = "
        insert into connected_sources (id, tenant_id, provider, name) select gen_random_uuid(), id, 'drive', 'd' from tenants;
        insert into source_documents (id, tenant_id, source_id, external_id, document_type, content_sha256)
            select gen_random_uuid(), s.tenant_id, s.id, 'd' || n, 'file', sha256(n::text::bytea) from connected_sources s, generate_series(1, 3000) n;
        insert into document_fields (tenant_id, document_id, name, value, amount, on_date, state)
            select d.tenant_id, d.id, f.name, f.value, f.amount, f.on_date, 'read' from source_documents d,
                lateral (values ('paper', case when d.external_id = 'd7' then 'contract' else 'invoice' end, null, null), ('supplier', 'Mill ' || d.external_id, null, null),
                    ('number', d.external_id, null, null), ('customer', 'Larkfield', null, null), ('subtotal', '1', 1, null), ('net', '1', 1, null),
                    ('total', '1', length(d.id::text) + random() * 1000, null), ('issued_on', '', null, date '2020-01-01' + (random() * 2000)::int))
                    f (name, value, amount, on_date);
        analyze source_documents, document_fields;";
    conn.execute(sqlx::raw_sql(fill)).await.expect("papers");
    let claims =
        format!("select set_config('request.jwt.claims', '{{\"tenant_id\": \"{}\"}}', false)", world.tenant_id.0);
    conn.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(claims))).await.expect("a tenant");
    for (filters, index) in [
        ("{\"paper\": \"contract\"}", "document_fields_papers"),
        ("{\"amount_min\": \"1020\"}", "document_fields_amounts"),
        ("{\"paper_since\": \"2025-06-01\"}", "document_fields_dates"),
        ("{\"supplier\": \"d77\"}", "document_fields_suppliers"),
    ] {
        let condition: String = sqlx::query_scalar("select memory.filter_condition($1::jsonb)")
            .bind(filters)
            .fetch_one(&mut conn)
            .await
            .expect("a condition");
        let sql =
            format!("select d.id from source_documents d where d.tenant_id = '{}' {condition}", world.tenant_id.0);
        let plan = plan(&mut conn, &sql).await;
        assert!(plan.contains(index), "{filters}: not by {index}\n{plan}");
    }
}

/// A session keeps the plan of a foreign-key check, also the one it made while the table was empty and every index was as good.
#[tokio::test]
async fn foreign_keys_are_checked_by_a_key_from_the_first_row_on() {
    let world = World::now().await;
    let mut conn = store::bench::administrator(&world.database.admin).await.expect("a connection");
    let checks: Vec<(String, String, Vec<String>)> = sqlx::query_as(
        "select f.conrelid::regclass::text, f.confrelid::regclass::text,
             (select array_agg(a.attname::text order by k.nth) from unnest(f.confkey) with ordinality k (attnum, nth)
              join pg_attribute a on a.attrelid = f.confrelid and a.attnum = k.attnum)
         from pg_constraint f where f.contype = 'f' and f.connamespace::regnamespace::text <> 'pgmq'",
    )
    .fetch_all(&mut conn)
    .await
    .expect("foreign keys");
    let keys: Vec<String> = sqlx::query_scalar("select indexrelid::regclass::text from pg_index where indisunique")
        .fetch_all(&mut conn)
        .await
        .expect("keys");
    assert!(checks.len() > 20, "only {} foreign keys", checks.len());
    for (from, to, columns) in checks {
        let conditions = columns.iter().enumerate().map(|(n, column)| format!("{column} = ${}", n + 1));
        let conditions = conditions.collect::<Vec<_>>().join(" and ");
        let plan = plan(&mut conn, &format!("select 1 from only {to} x where {conditions} for key share of x")).await;
        let by = plan.split("using ").nth(1).and_then(|rest| rest.split(' ').next());
        let is_a_key = by.is_some_and(|by| keys.iter().any(|key| key.rsplit('.').next() == Some(by)));
        assert!(is_a_key, "{from} is checked against {to} by {by:?}\n{plan}");
        // By the whole key, or by an id that is one by itself.
        let is_whole = !plan.contains("Filter") || plan.contains("Index Cond: (id = ");
        assert!(is_whole, "{from} is checked against {to} by a part of a key\n{plan}");
    }
}

/// How many pages of tables and indexes a statement touched.
async fn buffers(conn: &mut sqlx::PgConnection, sql: &str) -> i64 {
    let sql = format!("explain (analyze, buffers, format json) {sql}");
    let told: serde_json::Value = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(conn).await.expect("a plan");
    let of = |name: &str| told[0]["Plan"][name].as_i64().unwrap_or(0);
    of("Shared Hit Blocks") + of("Shared Read Blocks")
}

/// An agent that takes texts alone passes recordings over without reading them, however many wait, and so does one that looks for stale ones. One
/// that may take nothing reads nothing.
#[tokio::test]
async fn recordings_that_nobody_can_hear_cost_a_claim_nothing() {
    let n = if testkit::is_slow() { 200_000 } else { 20_000 };
    let world = World::now().await;
    let mut conn = world.conn().await;
    let fill = format!(
        "set statement_timeout = 0;
         insert into sales (tenant_id, email, processes) select id, 'p' || n || '@office.test', '{{text}}' from tenants, generate_series(1, 20) n;
         insert into sales (tenant_id, email, processes) select id, 'nothing@office.test', '{{}}' from tenants;
         insert into sales (tenant_id, email) select id, 'everything@office.test' from tenants;
         insert into activities (tenant_id, type, sales_id, raw_data, created_at)
             select t.id, 'call', (select array_agg(id) from sales)[1 + n % 30], '{{\"source_type\":\"url\"}}', now() - n * interval '1 s'
             from tenants t, generate_series(1, {n}) n;
         insert into activities (tenant_id, type, sales_id, raw_data, created_at)
             select t.id, 'note', (select array_agg(id) from sales)[1 + n % 30], '{{\"source_type\":\"text\"}}', now() - n * interval '1 min'
             from tenants t, generate_series(1, 90) n"
    );
    conn.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(fill))).await.expect("activities");
    let mut admin = store::bench::administrator(&world.database.admin).await.expect("a connection");
    for state in ["never analysed", "analysed"] {
        for function in ["claim_next_pending_activity", "claim_stale_activity"] {
            for (arguments, takes, most) in [
                ("(select min(id) from sales), 1", "texts", 1_000),
                ("(select max(id) from sales), 1", "everything", 1_000),
                ("(select id from sales where processes = '{}'), 1", "nothing", 200),
                ("(select min(id) from sales), 1, '{url}'", "texts and wants recordings", 200),
            ] {
                let claim = format!("select * from {function}({arguments})");
                conn.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(claim.clone())))
                    .await
                    .expect("a first claim, which reads the catalog");
                let read = buffers(&mut conn, &claim).await;
                println!("{function} over {n} recordings, {state}, by an agent that takes {takes}: {read} buffers");
                assert!(read < most, "{function}, {state}, {takes}: {read} buffers");
            }
        }
        admin.execute("analyze activities, sales").await.expect("statistics");
    }
    let heard = "select count(*) from activities a join sales s on s.user_id = a.locked_by
         where a.raw_data ->> 'source_type' = 'url' and s.processes = '{text}'";
    assert_eq!(sqlx::query_scalar::<_, i64>(heard).fetch_one(&mut *conn).await.expect("a count"), 0);
}

/// One sender with very many newest activities hides no other, and costs the list the same, however many they are.
#[tokio::test]
async fn a_bulk_sender_hides_no_other_unrecognised_sender() {
    let n = if testkit::is_slow() { 500_000 } else { 20_000 };
    let world = World::now().await;
    let mut conn = world.conn().await;
    // As they would have come: the second call adds older ones.
    let bulk = |first: i32| {
        format!(
            "insert into activities (tenant_id, type, direction, processing_status, raw_data, metadata, created_at)
             select id, 'email', 'inbound', 'completed', '{{\"source_type\":\"text\"}}', '{{\"from\":\"bulk@example.com\"}}', now() - n * interval '1 s'
             from tenants, generate_series({first}, {first} + {n}) n"
        )
    };
    let others = "insert into activities (tenant_id, type, direction, processing_status, raw_data, metadata, created_at)
         select id, 'email', 'inbound', 'completed', '{\"source_type\":\"text\"}', jsonb_build_object('from', sender), now() - interval '90 days' - n * interval '1 s'
         from tenants, generate_series(1, 3) n, unnest(array['ann@example.com', 'spam@example.com', repeat('x', 5000), '']) sender";
    conn.execute(sqlx::raw_sql("set statement_timeout = 0")).await.expect("set");
    conn.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(bulk(1)))).await.expect("activities");
    conn.execute(sqlx::raw_sql(others)).await.expect("activities");
    store::senders::ignore(&mut conn, world.tenant_id, "spam@example.com", "somebody").await.expect("ignored");
    let (schema, name, on) =
        store::indexes::LATER.iter().find(|(_, name, _)| *name == "activities_sender_idx").expect("an index");
    store::indexes::build(&world.env.db, schema, name, on).await.expect("built");

    let listed = store::senders::unrecognised(&mut conn, world.tenant_id, 100).await.expect("senders");
    let seen: Vec<_> = listed.iter().map(|one| (one.address.as_str(), one.n, one.n_senders)).collect();
    assert_eq!(seen, [("bulk@example.com", store::queue::MOST_COUNTED, 2), ("ann@example.com", 3, 2)]);
    let newest: String = sqlx::query_scalar(
        "select id::text from activities where metadata ->> 'from' like 'ann@%' order by created_at desc limit 1",
    )
    .fetch_one(&mut *conn)
    .await
    .expect("an id");
    assert_eq!(listed[1].newest_id.to_string(), newest);

    let sql = include_str!("../../../store/src/sql/senders_unrecognised.sql")
        .replace("$1", &format!("'{}'", world.tenant_id))
        .replace("$2", "100")
        .replace("$3", "1000");
    let before = buffers(&mut conn, &sql).await;
    conn.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(bulk(n + 2)))).await.expect("as many again");
    let after = buffers(&mut conn, &sql).await;
    println!("senders over {n} activities of one: {before} buffers, over twice as many {after}");
    assert!(after < before * 2, "twice as many activities of one sender: {before} buffers before, {after} after");
    let first = store::senders::unrecognised(&mut conn, world.tenant_id, 1).await.expect("senders");
    assert_eq!((first.len(), first[0].n_senders), (1, 2), "it says how many, also behind the last one that it lists");
}
