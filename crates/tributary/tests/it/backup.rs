//! A backup taken while everything runs, and what comes back from it elsewhere.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use domain::{Secret, TenantId};
use engine::blobs::Blobs;
use sqlx::{Connection as _, PgConnection};
use store::vault::Vault;
use store::{ConnectTo, Db};
use testkit::cluster::kill;
use testkit::wait_until;
use uuid::Uuid;

use crate::app::{App, Folder, client, command, free_port, run};

/// Runs a command of the installation in `folder`, which must succeed. Returns stdout and stderr.
fn said(folder: &Folder, args: &[&str]) -> (String, String) {
    let (output, out, err) = run(command(&folder.0, free_port()).args(args));
    assert!(output.status.success(), "{args:?}: {out}{err}");
    (out, err)
}

fn refused(folder: &Folder, args: &[&str]) -> String {
    let (output, out, err) = run(command(&folder.0, free_port()).args(args));
    assert!(!output.status.success(), "{args:?} was not refused: {out}{err}");
    err
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// The address of a folder's running database, with its login.
fn database(folder: &Folder) -> String {
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).expect("a file").trim().to_owned();
    format!("postgres://tributary:{}@127.0.0.1:{}/tributary", read("login.password"), read("postgres.port"))
}

/// The running database of a folder, as its login.
async fn connect(folder: &Folder) -> PgConnection {
    let mut conn = PgConnection::connect(&database(folder)).await.expect("a connection");
    sqlx::query("set role service_role").execute(&mut conn).await.expect("a role");
    conn
}

fn vault(folder: &Folder) -> Vault {
    Vault::open_file(&folder.0.join("master.key")).expect("a key")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_running_up_comes_back_elsewhere_with_tenants_keys_secrets_and_blobs() {
    let (here, there, backup) = (Folder::new(), Folder::new(), Folder::new());
    let port = free_port();
    let app = App::start(command(&here.0, port), &["up"], port).await;
    said(&here, &["tenant", "create", "acme"]);
    let (key, _) = said(&here, &["key", "create", "laptop", "--tenant", "acme"]);
    let (tenant_id, token) = (TenantId::new(), Uuid::now_v7());
    let mut conn = connect(&here).await;
    let own = operator(&mut conn).await;
    vault(&here).put(&mut conn, own, token, &Secret::new("a token")).await.expect("stored");
    let blobs = Blobs::in_folder(&here.0.join("blobs"));
    conn.close().await.expect("closed");
    let db = Db::lazy(&ConnectTo::url(&database(&here)).expect("an address"), 1, Duration::from_secs(10));
    let blob = blobs.put(&db, tenant_id, "a file".into()).await.expect("put");
    db.close().await;

    let (out, err) = said(&here, &["backup", text(&backup.0), "--with-master-key"]);
    assert!(out.contains("1 blobs") && out.contains("with the master key") && !err.contains("WARNING"), "{out}{err}");
    assert!(err.contains("database: copying") && err.contains("blobs: copying"), "{err}");
    assert!(refused(&here, &["backup", text(&backup.0)]).contains("is not empty"));
    for name in ["login.password", "postgres.password", "master.key"] {
        let mode = std::fs::metadata(backup.0.join(name)).expect(name).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name} is readable by others");
    }
    let left: Vec<_> =
        std::fs::read_dir(here.0.join("run")).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("password")), "a password was left: {left:?}");
    let waiting = refused(&here, &["restore", text(&backup.0)]);
    assert!(waiting.contains("`up` runs") && waiting.contains("tributary down"), "{waiting}");
    drop(app);
    said(&here, &["down"]);
    assert!(refused(&here, &["restore", text(&backup.0)]).contains("is not empty"));

    let (out, err) = said(&there, &["restore", text(&backup.0)]);
    assert!(out.contains("1 blobs") && err.contains("tributary up") && !err.contains("WARNING"), "{out}{err}");
    assert!(refused(&there, &["restore", text(&backup.0)]).contains("is not empty"));
    for name in ["login.password", "postgres.password", "master.key", "postgres"] {
        let (was, is) =
            (std::fs::metadata(here.0.join(name)).expect(name), std::fs::metadata(there.0.join(name)).expect(name));
        assert_eq!((is.uid(), is.mode()), (was.uid(), was.mode()), "{name}");
    }
    let port = free_port();
    let app = App::start(command(&there.0, port), &["up"], port).await;
    let (tenants, _) = said(&there, &["tenant", "list"]);
    assert!(tenants.contains("acme"), "{tenants}");
    let asked =
        client().get(format!("{}/api/v1/queues", app.url)).bearer_auth(key.trim()).send().await.expect("an answer");
    assert_eq!(asked.status(), 200, "the key is not known there");
    let mut conn = connect(&there).await;
    let tenant = operator(&mut conn).await;
    let opened = vault(&there).get(&mut conn, tenant, token).await.expect("opened").expect("there");
    assert_eq!(opened.reveal(), "a token");
    let kept = Blobs::in_folder(&there.0.join("blobs")).get(tenant_id, &blob).await.expect("an answer");
    assert_eq!(kept.as_deref(), Some(&b"a file"[..]));
    assert!(said(&there, &["doctor"]).0.lines().all(|line| line.starts_with("ok")));
}

async fn operator(conn: &mut PgConnection) -> TenantId {
    store::tenants::ensure_operator(conn).await.expect("a tenant")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_without_the_master_key_says_so_and_needs_the_right_one() {
    let (here, there, backup) = (Folder::new(), Folder::new(), Folder::new());
    assert!(refused(&here, &["backup", text(&backup.0)]).contains("nothing to back up"));
    assert!(!here.0.join("postgres").exists(), "a cluster was made to be backed up");
    said(&here, &["migrate"]);
    let (out, err) = said(&here, &["backup", text(&backup.0)]); // starts the server itself, and stops it
    assert!(
        out.contains("without the master key") && err.contains("no stored token or channel secret can be read"),
        "{err}"
    );
    assert!(!backup.0.join("master.key").exists() && !here.0.join("postgres/postmaster.pid").exists());

    // Another key in the folder, the right one, none.
    std::fs::create_dir_all(&there.0).expect("a folder");
    std::fs::write(there.0.join("master.key"), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").expect("a key");
    assert!(refused(&there, &["restore", text(&backup.0)]).contains("is another key than the backup's"));
    std::fs::copy(here.0.join("master.key"), there.0.join("master.key")).expect("the right key");
    let (_, err) = said(&there, &["restore", text(&backup.0)]);
    assert!(!err.contains("WARNING"), "{err}");
    let elsewhere = Folder::new();
    let (_, err) = said(&elsewhere, &["restore", text(&backup.0)]);
    assert!(err.contains("Before `tributary up`") && err.contains("MASTER_KEY"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_whole_backup_is_refused_and_an_unfinished_restore_begins_anew() {
    let (here, there, backup) = (Folder::new(), Folder::new(), Folder::new());
    said(&here, &["migrate"]);
    said(&here, &["backup", text(&backup.0)]);
    // Interrupted: everything but the last step.
    let manifest = backup.0.join("backup.json");
    let whole = std::fs::read_to_string(&manifest).expect("a manifest");
    std::fs::remove_file(&manifest).expect("removed");
    assert!(refused(&there, &["restore", text(&backup.0)]).contains("one that was interrupted"));
    // Of a newer program.
    std::fs::write(&manifest, whole.replace("\"schema\": ", "\"schema\": 9")).expect("written");
    assert!(refused(&there, &["restore", text(&backup.0)]).contains("newer than this binary's"));
    std::fs::write(&manifest, &whole).expect("written");
    // A byte of the database changed.
    let damaged = backup.0.join("postgres/global/pg_control");
    let bytes = std::fs::read(&damaged).expect("a file");
    let mut other = bytes.clone();
    other[100] ^= 1;
    std::fs::write(&damaged, &other).expect("changed");
    assert!(refused(&there, &["restore", text(&backup.0)]).contains("is damaged"));
    let up = refused(&there, &["up"]);
    assert!(up.contains("was not finished") && up.contains("tributary restore"), "{up}");
    assert!(!there.0.join("postgres").exists(), "half a restore became a database");
    std::fs::write(&damaged, &bytes).expect("mended");
    said(&there, &["restore", text(&backup.0)]);
    said(&there, &["migrate"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_comes_back_consistent() {
    let (here, there, backup) = (Folder::new(), Folder::new(), Folder::new());
    let port = free_port();
    let app = App::start(command(&here.0, port), &["up"], port).await;
    // Each transaction moves an amount between two rows and notes it in a third table: nothing may come back in between.
    let mut conn = connect(&here).await;
    let tenant_id = operator(&mut conn).await;
    let alert =
        "insert into tributary.alerts (id, tenant_id, kind, subject, what, todo) values ($1, $2, 'load', $3, '', '')";
    let blob =
        "insert into tributary.blobs (tenant_id, sha256, bytes) values ($1, encode(sha256($2::text::bytea), 'hex'), 0)";
    let mut before = 0;
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let writing = tokio::spawn(async move {
        let mut n = 0;
        while !*stopped.borrow_and_update() {
            let mut tx = conn.begin().await.expect("a transaction");
            let insert = sqlx::query(alert).bind(Uuid::now_v7()).bind(tenant_id.0).bind(n.to_string());
            insert.execute(&mut *tx).await.expect("a row");
            sqlx::query(blob).bind(tenant_id.0).bind(n.to_string()).execute(&mut *tx).await.expect("a row");
            tx.commit().await.expect("committed");
            n += 1;
        }
        n
    });
    let mut counting = connect(&here).await;
    while before < 50 {
        before = count(&mut counting, "tributary.blobs").await;
    }
    let folder = backup.0.clone();
    let mut take = command(&here.0, free_port());
    let taken = tokio::task::spawn_blocking(move || run(take.arg("backup").arg(folder))).await.expect("no panic");
    assert!(taken.0.status.success(), "{}", taken.2);
    stop.send(true).expect("it writes");
    let written: i64 = writing.await.expect("it wrote");
    drop(app);
    if let Ok(pid) = std::fs::read_to_string(here.0.join("postgres/postmaster.pid")) {
        kill(pid.lines().next().and_then(|pid| pid.parse().ok()).expect("a pid"), rustix::process::Signal::QUIT);
    }

    said(&there, &["restore", text(&backup.0)]);
    let port = free_port();
    let _app = App::start(command(&there.0, port), &["up"], port).await;
    let mut conn = connect(&there).await;
    let (rows, alerts) = (count(&mut conn, "tributary.blobs").await, loaded(&mut conn).await);
    println!("{before} rows before the backup, {rows} in it, {written} written in all");
    assert_eq!(rows, alerts, "half a transaction came back");
    assert!(rows >= before && rows <= written, "{before} <= {rows} <= {written}");
    let last: i64 = sqlx::query_scalar("select max(subject::bigint) from tributary.alerts where kind = 'load'")
        .fetch_one(&mut conn)
        .await
        .expect("the last one");
    assert_eq!(last + 1, rows, "there is a gap");
}

async fn count(conn: &mut PgConnection, table: &'static str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select count(*) from {table}")))
        .fetch_one(conn)
        .await
        .expect("a count")
}

async fn loaded(conn: &mut PgConnection) -> i64 {
    let sql = "select count(*) from tributary.alerts where kind = 'load'";
    sqlx::query_scalar(sql).fetch_one(conn).await.expect("a count")
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_given_database_only_files_and_the_key_are_ours_to_write() {
    let (world, here, there, backup) = (testkit::World::now().await, Folder::new(), Folder::new(), Folder::new());
    let ask = |folder: &Folder, args: &[&str]| {
        run(command(&folder.0, free_port()).env("DATABASE_URL", &world.database.url).args(args))
    };
    let with = |folder: &Folder, args: &[&str]| {
        let (output, out, err) = ask(folder, args);
        assert!(output.status.success(), "{out}{err}");
        (out, err)
    };
    let blobs = Blobs::in_folder(&here.0.join("blobs"));
    let blob = blobs.put(&world.env.db, world.tenant_id, "a file".into()).await.expect("put");
    let (out, err) = with(&here, &["backup", text(&backup.0), "--with-master-key"]);
    assert!(out.contains("no database, 1 blobs") && err.contains("DATABASE_URL is yours to back up"), "{out}{err}");
    assert!(!backup.0.join("postgres").exists());
    // While the master key is rotated, the copied rows and the copied key might not belong together.
    let (mut alone, during) = (world.conn().await, Folder::new());
    // The backup's own lock goes with its session, which the server may still be closing.
    let is_locked =
        wait_until(Duration::from_secs(20), async || store::vault::lock_rotation(&mut alone).await.expect("an answer"));
    assert!(is_locked.await, "the backup that has ended still keeps rotations away");
    let (output, _, err) = ask(&here, &["backup", text(&during.0), "--with-master-key"]);
    assert!(!output.status.success() && err.contains("the master key is being rotated"), "{err}");
    sqlx::query("select pg_advisory_unlock_all()").execute(&mut *alone).await.expect("unlocked");
    with(&here, &["backup", text(&during.0), "--with-master-key"]);
    assert!(ask(&here, &["doctor"]).1.contains("yours to back up"));
    let (out, _) = with(&there, &["restore", text(&backup.0)]);
    assert!(out.contains("yours to restore"), "{out}");
    let kept = Blobs::in_folder(&there.0.join("blobs")).get(world.tenant_id, &blob).await.expect("an answer");
    assert_eq!(kept.as_deref(), Some(&b"a file"[..]));
    assert_eq!(vault(&here).key_id(), vault(&there).key_id());
}
