//! Old rows go in small bites: no statement takes long, nobody waits for one, and a rule that fails keeps no other from running.
//!
//! Three limits show it, none of which needs an idle machine. A bite removes few rows. Who writes meanwhile waits for no lock. And with the many rows
//! of `./test --slow` a statement ends within a second, at the third attempt at the latest.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use domain::{Caller, TenantId};
use store::contacts::NewContact;
use store::forgotten::{self, Bite, BiteCursor, Bitten, Subject};
use store::{PgConnection, retention};
use testkit::{World, is_slow};
use tokio::sync::oneshot;

/// A machine may be busy for a moment. A statement that takes too long by itself does so each time.
const ATTEMPTS: usize = 3;

/// A session that ends every statement after a second. The few rows of a plain `./test` would show nothing by that.
async fn impatient(world: &World) -> store::Connection {
    let mut conn = world.conn().await;
    let limit = if is_slow() { "set statement_timeout = '1s'" } else { "set statement_timeout = '30s'" };
    sqlx::query(limit).execute(&mut *conn).await.expect("a limit");
    conn
}

/// Whether a statement was ended because it took too long. It has changed nothing.
fn is_late(error: &store::Error) -> bool {
    error.code().as_deref() == Some("57014")
}

/// The rows that rules removed: of each table the rows of every bite, and the rules that failed.
#[derive(Debug)]
struct Removed {
    bites: HashMap<String, Vec<u64>>,
    failed: Vec<(String, store::Error)>,
}

impl Removed {
    fn bites(&self, table: &str) -> &[u64] {
        self.bites.get(table).map(Vec::as_slice).unwrap_or_default()
    }

    fn rows(&self, table: &str) -> u64 {
        self.bites(table).iter().sum()
    }
}

/// Enforces the rules; again, if one ran out of time.
async fn enforce(conn: &mut PgConnection) -> Removed {
    let bites: RefCell<HashMap<String, Vec<u64>>> = RefCell::default();
    let mut failed: Vec<(String, store::Error)> = Vec::new();
    let told = |table: &str, n: u64| bites.borrow_mut().entry(table.to_owned()).or_default().push(n);
    for _ in 0..ATTEMPTS {
        let swept = retention::enforce(conn, None, &[], &told).await;
        failed = swept.into_iter().filter_map(|swept| Some((swept.table, swept.error?))).collect();
        if !failed.iter().any(|(_, error)| is_late(error)) {
            break;
        }
    }
    Removed { bites: bites.into_inner(), failed }
}

/// Takes a bite; again, if it ran out of time.
async fn take(conn: &mut PgConnection, tenant_id: TenantId, subject: Subject, bite: &Bite, from: BiteCursor) -> Bitten {
    let mut taken = forgotten::bite(conn, tenant_id, subject, bite, from).await;
    for _ in 1..ATTEMPTS {
        if !taken.as_ref().is_err_and(is_late) {
            break;
        }
        taken = forgotten::bite(conn, tenant_id, subject, bite, from).await;
    }
    let bitten = taken.unwrap_or_else(|error| panic!("{bite:?} is not within a second: {error:?}"));
    assert!(bitten.gone <= 5_000, "{bite:?}: {bitten:?}");
    bitten
}

/// Writes like a server's own traffic until told to stop, and waits for no lock. Returns the longest write.
async fn keep_writing(world: &World, sql: &'static str, mut stop: oneshot::Receiver<()>) -> Duration {
    let (mut conn, mut longest) = (world.conn().await, Duration::ZERO);
    sqlx::query("set lock_timeout = '1s'").execute(&mut *conn).await.expect("a limit");
    while stop.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty) {
        let begun = Instant::now();
        sqlx::query(sql).execute(&mut *conn).await.expect("a write beside the removal");
        longest = longest.max(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    longest
}

async fn count(world: &World, sql: &str) -> i64 {
    let counted = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned())).fetch_one(&mut *world.conn().await).await;
    counted.expect(sql)
}

async fn run(world: &World, sql: String) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut *world.conn().await).await.expect("run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn millions_of_old_refusals_go_in_bites_though_another_rule_fails() {
    let (world, n) = (World::now().await, if is_slow() { 3_000_000 } else { 60_000 });
    run(
        &world,
        format!(
            "set statement_timeout = 0;
         insert into tributary.channel_refusals (tenant_id, channel_id, status, reason, created_at)
         select t.id, gen_random_uuid(), 401, 'bad signature', now() - interval '31 days' - n * interval '1 ms'
         from tenants t, generate_series(1, {n}) n;
         set statement_timeout = '30s'"
        ),
    )
    .await;
    world.caller(world.tenant_id, &[domain::Scope::Read]).await;
    run(&world, "insert into tributary.sessions (hash, kind, tenant_id, key_id, expires_at)
        select sha256('old'), 'session', k.tenant_id, k.id, now() - interval '3 days' from tributary.api_keys k limit 1".into()).await;
    // One rule cannot do its work.
    let broken = "set role tributary_owner;
        create function public.refuse() returns trigger language plpgsql as $$ begin raise 'not today'; end $$;
        create trigger refuse before delete on tributary.sessions for each row execute function public.refuse()";
    sqlx::raw_sql(broken).execute(&mut world.login_conn().await).await.expect("a broken rule");

    let write = "insert into tributary.channel_refusals (tenant_id, channel_id, status, reason)
        select id, gen_random_uuid(), 401, 'new' from tenants limit 1";
    let (stop, stopped) = oneshot::channel();
    let mut conn = impatient(&world).await;
    let remove = async {
        let begun = Instant::now();
        let removed = enforce(&mut conn).await;
        let _ = stop.send(());
        (removed, begun.elapsed())
    };
    let ((removed, took), longest) = tokio::join!(remove, keep_writing(&world, write, stopped));
    let bites = removed.bites("tributary.channel_refusals");
    println!(
        "{n} refusals went in {took:.1?} and {} bites; the longest write beside them took {longest:.1?}",
        bites.len()
    );
    let failed: Vec<&str> = removed.failed.iter().map(|(table, _)| table.as_str()).collect();
    assert_eq!(failed, ["tributary.sessions"], "{:?}", removed.failed);
    assert_eq!(removed.rows("tributary.channel_refusals"), n);
    assert!(bites.iter().all(|rows| *rows <= 1_000), "{bites:?}");
    assert_eq!(count(&world, "select count(*) from tributary.channel_refusals where reason <> 'new'").await, 0);
    assert!(count(&world, "select count(*) from tributary.channel_refusals").await > 0, "new ones stay");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_long_pass_met_goes_in_bites_before_its_job() {
    let (world, n) = (World::now().await, if is_slow() { 1_000_000 } else { 20_000 });
    // Two jobs that failed long ago. The newest one stays, with what it met: it may be tried again.
    run(&world, format!(
        "set statement_timeout = 0;
         insert into connected_sources (id, tenant_id, provider, name) select gen_random_uuid(), id, 'hubspot', 'HubSpot' from tenants;
         insert into sync_jobs (id, tenant_id, source_id, kind, status, finished_at)
             select ('00000000-0000-0000-0000-00000000000' || nth)::uuid, tenant_id, id, 'full', 'failed', now() - interval '100 days'
             from connected_sources, generate_series(1, 2) nth;
         insert into tributary.sync_seen (tenant_id, job_id, external_id)
             select j.tenant_id, j.id, 'd' || n from sync_jobs j, generate_series(1, {n}) n where right(j.id::text, 1) = '1' or n <= 10;
         set statement_timeout = '30s'"
    ))
    .await;
    let removed = enforce(&mut *impatient(&world).await).await;
    assert!(removed.failed.is_empty(), "{:?}", removed.failed);
    let (seen, jobs) = (removed.rows("tributary.sync_seen"), removed.rows("public.sync_jobs"));
    assert_eq!((seen, jobs), (n, 1), "rows went with their job, or stay");
    assert!(removed.bites("tributary.sync_seen").iter().all(|rows| *rows <= 1_000), "{removed:?}");
    assert_eq!(count(&world, "select count(*) from tributary.sync_seen").await, 10, "of the newest job");
}

/// Rows that go with an old one are found by an index. Without one, every row of a bite would read the whole other table.
#[tokio::test]
async fn rows_that_go_with_an_old_one_are_found_by_an_index() {
    let world = World::now().await;
    let tables: Vec<&str> = retention::RULES.iter().map(|rule| rule.table).chain(["tributary.workers"]).collect();
    let without: Vec<String> = sqlx::query_scalar(
        "select f.conrelid::regclass::text from pg_constraint f
         join pg_class c on c.oid = f.confrelid join pg_namespace n on n.oid = c.relnamespace
         where f.contype = 'f' and f.confdeltype = 'c' and format('%I.%I', n.nspname, c.relname) = any ($1) and not exists (
             select from pg_index i join pg_attribute a on a.attrelid = i.indrelid
             where i.indrelid = f.conrelid and i.indpred is null and a.attnum = any (f.conkey) and a.attname <> 'tenant_id'
                 and (i.indkey[0] = a.attnum or (i.indkey[0] = any (f.conkey) and i.indkey[1] = a.attnum)))",
    )
    .bind(tables)
    .fetch_all(&mut *world.conn().await)
    .await
    .expect("the catalog");
    assert_eq!(without, [] as [String; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_with_many_documents_is_forgotten_in_bites() {
    let (world, n) = (World::now().await, if is_slow() { 200_000 } else { 3_000 });
    // One document has very many chunks, and the source has as many rows of every other kind as documents.
    run(&world, format!(
        "set statement_timeout = 0;
         insert into connected_sources (id, tenant_id, provider, name) select gen_random_uuid(), id, p, p from tenants, unnest(array['channel', 'hubspot']) p;
         insert into source_documents (id, tenant_id, source_id, external_id, document_type, content_sha256, n_chunks)
             select gen_random_uuid(), s.tenant_id, s.id, 'd' || n, 'note', sha256(n::text::bytea), case n when 7 then 5000 else 1 end
             from connected_sources s, generate_series(1, {n}) n where s.provider = 'hubspot';
         insert into document_chunks (id, tenant_id, document_id, ordinal, hash, occurrence, text, lang)
             select gen_random_uuid(), d.tenant_id, d.id, c, sha256((d.id::text || c)::bytea), 0, 'text', 'english'
             from source_documents d, lateral generate_series(1, d.n_chunks) c;
         insert into document_mentions (tenant_id, source_id, external_id, mentions)
             select s.tenant_id, s.id, 'd' || n, 'c' || n from connected_sources s, generate_series(1, {n}) n where s.provider = 'hubspot';
         insert into sync_jobs (id, tenant_id, source_id, kind, status, finished_at)
             select gen_random_uuid(), s.tenant_id, s.id, 'full', 'completed', now() from connected_sources s where s.provider = 'hubspot';
         insert into tributary.sync_seen (tenant_id, job_id, external_id)
             select j.tenant_id, j.id, 'd' || n from sync_jobs j, generate_series(1, {n}) n;
         insert into pgmq.a_ingestion_queue (msg_id, read_ct, enqueued_at, vt, message)
             select n, 1, now(), now(), jsonb_build_object('tenant_id', s.tenant_id, 'source_id', s.id) from connected_sources s, generate_series(1, {n}) n where s.provider = 'hubspot';
         set statement_timeout = '30s'"
    ))
    .await;
    let source: uuid::Uuid = sqlx::query_scalar("select id from connected_sources where provider = 'hubspot'")
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("a source");
    let (tenant_id, source_id) = (world.tenant_id, domain::SourceId(source));
    let write = "insert into source_documents (id, tenant_id, source_id, external_id, document_type, content_sha256)
        select gen_random_uuid(), tenant_id, id, gen_random_uuid()::text, 'note', sha256('x') from connected_sources where provider = 'channel'";
    let (stop, stopped) = oneshot::channel();
    let mut conn = impatient(&world).await;
    counted_within_a_second(&world, tenant_id, Subject::Source(source_id), n).await;
    let remove = async {
        let (begun, mut steps, subject) = (Instant::now(), 0, Subject::Source(source_id));
        for bite in forgotten::bites(&mut conn, subject).await.expect("kinds") {
            let mut next = Some(BiteCursor::Start);
            while let Some(from) = next {
                let bitten = take(&mut conn, tenant_id, subject, &bite, from).await;
                (next, steps) = (bitten.next, steps + 1);
            }
        }
        assert!(
            forgotten::remove_subject(&mut conn, tenant_id, subject).await.expect("the source itself"),
            "more is left"
        );
        let _ = stop.send(());
        (begun.elapsed(), steps)
    };
    let ((took, steps), longest) = tokio::join!(remove, keep_writing(&world, write, stopped));
    println!("{n} documents went in {took:.1?} and {steps} steps; the longest write beside them took {longest:.1?}");
    for left in [
        "select count(*) from source_documents d join connected_sources s on s.id = d.source_id where s.provider = 'hubspot'",
        "select count(*) from document_chunks",
        "select count(*) from document_mentions",
        "select count(*) from tributary.sync_seen",
        "select count(*) from pgmq.a_ingestion_queue",
        "select count(*) from connected_sources where provider = 'hubspot'",
    ] {
        assert_eq!(count(&world, left).await, 0, "{left}");
    }
    assert!(count(&world, "select count(*) from source_documents").await > 0, "another source's documents stay");
}

/// Counts a subject with `n` documents, one of which has 5,000 chunks, within the time that a person waits.
async fn counted_within_a_second(world: &World, tenant_id: TenantId, subject: Subject, n: i64) {
    let mut conn = impatient(world).await;
    let mut counted = forgotten::count(&mut conn, tenant_id, subject).await;
    for _ in 1..ATTEMPTS {
        if !counted.as_ref().is_err_and(is_late) {
            break;
        }
        counted = forgotten::count(&mut conn, tenant_id, subject).await;
    }
    let counted = counted.expect("a count within a second");
    assert_eq!(counted.documents, n.min(forgotten::MOST_COUNTED), "{counted:?}");
    match subject {
        Subject::Tenant(_) => assert_eq!(counted.chunks, 0),
        _ if n <= forgotten::MOST_SUMMED => assert_eq!(counted.chunks, n + 4_999),
        _ => assert!((forgotten::MOST_SUMMED..n).contains(&counted.chunks), "{counted:?}"),
    }
}

/// Takes every bite. Returns the number of bites.
async fn take_all(world: &World, tenant_id: TenantId, subject: Subject) -> usize {
    let (mut conn, mut n) = (impatient(world).await, 0);
    loop {
        let mut gone = 0;
        let bites: Vec<Bite> = forgotten::bites(&mut conn, subject).await.expect("kinds");
        for bite in &bites {
            let mut next = Some(BiteCursor::Start);
            while let Some(from) = next {
                let bitten = take(&mut conn, tenant_id, subject, bite, from).await;
                (gone, next, n) = (gone + bitten.gone, bitten.next, n + 1);
            }
        }
        if gone == 0 {
            break;
        }
    }
    assert!(
        forgotten::remove_subject(&mut conn, tenant_id, subject).await.expect("within a second"),
        "something is left"
    );
    n
}

/// 200,000 in `./test --slow`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contact_and_a_tenant_with_many_documents_go_in_bites() {
    let (world, n) = (World::now().await, if is_slow() { 200_000 } else { 2_000 });
    for (name, what) in [("of a contact", "contact"), ("of a tenant", "tenant")] {
        let tenant_id = world.other_tenant(name).await;
        let caller = Caller::local("test", tenant_id, false);
        let person = NewContact { email: Some("ann@example.com".into()), ..NewContact::default() };
        let contact = engine::contacts::create(&world.env, &caller, person).await.expect("a contact");
        // One document has very many chunks, and there are messages about every activity.
        run(&world, format!(
            "set statement_timeout = 0;
             insert into connected_sources (id, tenant_id, provider, name) values (gen_random_uuid(), '{tenant_id}', 'manual', 'notes');
             insert into activities (tenant_id, contact_id, type, raw_data) select '{tenant_id}', {contact}, 'note', '{{\"source_type\": \"text\", \"content\": \"x\"}}' from generate_series(1, {n});
             delete from pgmq.q_remember_activity;
             insert into source_documents (id, tenant_id, source_id, external_id, document_type, content_sha256, contact_id, n_chunks)
                 select gen_random_uuid(), a.tenant_id, s.id, 'activity:' || a.id, 'note', sha256('x'), a.contact_id, case when row_number() over () = 7 then 5000 else 1 end
                 from activities a join connected_sources s on s.tenant_id = a.tenant_id and s.provider = 'manual' where a.tenant_id = '{tenant_id}';
             insert into document_chunks (id, tenant_id, document_id, ordinal, hash, occurrence, text, lang)
                 select gen_random_uuid(), d.tenant_id, d.id, c, sha256((d.id::text || c)::bytea), 0, 'text', 'english'
                 from source_documents d, lateral generate_series(1, d.n_chunks) c where d.tenant_id = '{tenant_id}';
             insert into pgmq.a_remember_activity (msg_id, read_ct, enqueued_at, vt, message)
                 select 1000000 + row_number() over (), 1, now(), now(), jsonb_build_object('tenant_id', tenant_id, 'activity_id', id) from activities where tenant_id = '{tenant_id}';
             insert into client_intelligence (id, tenant_id, client_name, key_facts, evidence)
                 select gen_random_uuid(), tenant_id, 'c', '{{\"a\": 1}}', jsonb_build_object('a', jsonb_build_array(id)) from source_documents where tenant_id = '{tenant_id}';
             set statement_timeout = '30s'"
        ))
        .await;
        let subject = if what == "contact" { Subject::Contact(contact) } else { Subject::Tenant(tenant_id) };
        counted_within_a_second(&world, tenant_id, subject, n).await;
        let begun = Instant::now();
        let bites = Box::pin(take_all(&world, tenant_id, subject)).await;
        println!("a {what} with {n} activities and documents went in {:.1?} and {bites} bites", begun.elapsed());
        for table in ["activities", "source_documents", "document_chunks", "client_intelligence"] {
            assert_eq!(
                count(&world, &format!("select count(*) from {table} where tenant_id = '{tenant_id}'")).await,
                0,
                "{table}"
            );
        }
        let named =
            format!("select count(*) from pgmq.a_remember_activity where message ->> 'tenant_id' = '{tenant_id}'");
        assert_eq!(count(&world, &named).await, 0);
    }
}

/// S25.
#[tokio::test]
async fn a_key_that_expires_is_refused_and_a_month_later_removed() {
    let world = World::now().await;
    let mut conn = world.conn().await;
    let scopes = [domain::Scope::Agent];
    let (_, plain) = store::keys::create(&mut conn, world.tenant_id, None, "device", &scopes).await.expect("a key");
    let lasts = Some(Duration::from_secs(3_600));
    let (id, secret) =
        store::keys::create_for(&mut conn, world.tenant_id, None, "frame", &scopes, lasts).await.expect("a key");
    for key in [&plain, &secret] {
        assert!(store::keys::authenticate(&mut conn, key).await.expect("an answer").is_some());
    }
    let age = "update tributary.api_keys set expires_at = now() - make_interval(days => $2) where id = $1";
    sqlx::query(age).bind(id.0).bind(0).execute(&mut *conn).await.expect("expired");
    assert!(store::keys::authenticate(&mut conn, &secret).await.expect("an answer").is_none(), "S25: it has expired");
    assert!(store::keys::authenticate(&mut conn, &plain).await.expect("an answer").is_some());
    let keys = "select count(*) from tributary.api_keys where name in ('frame', 'device')";
    for (days, left) in [(29, 2), (31, 1)] {
        sqlx::query(age).bind(id.0).bind(days).execute(&mut *conn).await.expect("aged");
        retention::enforce(&mut conn, None, &[], |_, _| {}).await;
        assert_eq!(count(&world, keys).await, left, "{days} days after it expired");
    }
}
