//! Blobs: one object for the same bytes, nothing readable that is broken, nothing removed that is named or young; in a folder and in S3.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use chrono::TimeDelta;
use domain::{BlobKey, Fault, TenantId};
use engine::Env;
use engine::blobs::{Blobs, Copied, collect};
use futures_util::TryStreamExt as _;
use testkit::{World, config};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

/// A world whose blobs lie in a folder of the test's own.
struct Kept {
    world: World,
    env: Env,
    dir: PathBuf,
}

impl Kept {
    async fn new() -> Self {
        let world = World::new().await;
        let dir = std::env::temp_dir().join(format!("tributary-blobs-{}", uuid::Uuid::now_v7().simple()));
        let url = format!("file://{}", dir.display());
        let blobs = Blobs::open(&config(&["--blob-url", &url]), world.env.clock.clone()).expect("a folder");
        let env = Env { blobs, ..world.env.clone() };
        Self { world, env, dir }
    }

    async fn put(&self, text: &str) -> BlobKey {
        self.put_as(self.world.tenant_id, text).await
    }

    async fn put_as(&self, tenant_id: TenantId, text: &str) -> BlobKey {
        self.env.blobs.put(&self.env.db, tenant_id, Bytes::from(text.to_owned())).await.expect("put")
    }

    async fn read(&self, key: &BlobKey) -> Option<Bytes> {
        self.env.blobs.get(self.world.tenant_id, key).await.expect("an answer")
    }

    fn path(&self, key: &BlobKey) -> PathBuf {
        self.dir.join(self.world.tenant_id.to_string()).join(key.to_string())
    }

    fn objects(&self) -> Vec<PathBuf> {
        let entries = |dir: &PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        entries(&self.dir).flat_map(|tenant| entries(&tenant).collect::<Vec<_>>()).collect()
    }

    async fn rows(&self) -> i64 {
        let mut conn = self.world.conn().await;
        sqlx::query_scalar("select count(*) from tributary.blobs").fetch_one(&mut *conn).await.expect("a count")
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[tokio::test]
async fn the_same_bytes_are_one_object_and_another_tenants_are_another() {
    let kept = Kept::new().await;
    assert!(!kept.dir.exists(), "a folder was made before anything was put");
    let key = kept.put("hello").await;
    assert_eq!(key.to_string(), "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    let written = std::fs::metadata(kept.path(&key)).expect("an object").modified().expect("a time");
    assert_eq!(kept.put("hello").await, key);
    assert_eq!(std::fs::metadata(kept.path(&key)).expect("it").modified().expect("a time"), written, "written twice");
    assert_eq!((kept.objects().len(), kept.rows().await), (1, 1));
    assert_eq!(kept.read(&key).await.as_deref(), Some(&b"hello"[..]));
    let (size, stream) = kept.env.blobs.get_stream(kept.world.tenant_id, &key).await.expect("an answer").expect("it");
    let streamed: Vec<Bytes> = stream.try_collect().await.expect("its bytes");
    assert_eq!((size, streamed.concat()), (5, b"hello".to_vec()));

    let other = kept.world.other_tenant("other").await;
    assert!(kept.env.blobs.get(other, &key).await.expect("an answer").is_none(), "another tenant reads it");
    kept.put_as(other, "hello").await;
    assert_eq!((kept.objects().len(), kept.rows().await), (2, 2));
    assert_eq!(std::fs::metadata(&kept.dir).expect("a folder").permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn what_a_crash_or_a_bad_disk_left_is_never_handed_out_and_is_mended_by_the_next_put() {
    let kept = Kept::new().await;
    let key = kept.put("whole").await;
    // Between the row and the bytes.
    std::fs::remove_file(kept.path(&key)).expect("removed");
    assert_eq!(kept.read(&key).await, None);
    assert_eq!(kept.put("whole").await, key);
    assert_eq!(kept.read(&key).await.as_deref(), Some(&b"whole"[..]));
    // Cut short, as no write of ours leaves it.
    std::fs::write(kept.path(&key), "who").expect("cut");
    assert!(matches!(kept.env.blobs.get(kept.world.tenant_id, &key).await, Err(Fault::Malformed { .. })));
    kept.put("whole").await;
    assert_eq!(kept.read(&key).await.as_deref(), Some(&b"whole"[..]));
    // Changed in place: it is not copied as if it were whole, and half a file beside it is no blob.
    let good = kept.put("good").await;
    std::fs::write(kept.path(&key), "wrong").expect("changed");
    std::fs::write(kept.path(&good).with_extension("#1"), "ha").expect("half a file");
    let elsewhere = Blobs::in_folder(&kept.dir.join("elsewhere"));
    let copied = kept.env.blobs.copy_all(&elsewhere).await.expect("copied");
    let damaged = vec![format!("{}/{key}", kept.world.tenant_id)];
    assert_eq!(copied, Copied { objects: 1, bytes: 4, damaged });
    assert_eq!(elsewhere.get(kept.world.tenant_id, &good).await.expect("an answer").as_deref(), Some(&b"good"[..]));
}

#[tokio::test]
async fn only_what_is_old_and_unnamed_is_collected_and_not_during_a_backup() {
    let kept = Kept::new().await;
    let mut owner = store::bench::administrator(&kept.world.database.admin).await.expect("the owner");
    let (old, named) = (kept.put("old").await, kept.put("named").await);
    let gone = kept.world.other_tenant("gone").await;
    kept.put_as(gone, "of a tenant that goes").await;
    sqlx::query("delete from public.tenants where id = $1").bind(gone.0).execute(&mut owner).await.expect("gone");
    kept.world.env.clock.advance(TimeDelta::hours(23));
    collect(&kept.env).await.expect("collected");
    assert_eq!(kept.rows().await, 3, "a young one was removed");

    let other = kept.world.other_tenant("other").await;
    for (tenant_id, key) in [(kept.world.tenant_id, named), (other, old)] {
        let mut conn = kept.world.conn().await;
        let source_id = store::sources::ensure_manual(&mut conn, tenant_id).await.expect("a source");
        let record = domain::Record {
            blob_key: Some(key.to_string()),
            ..domain::Record::new(source_id, "a", domain::DocumentType::File, "")
        };
        let stored = store::memory::Stored {
            id: domain::DocumentId::new(),
            record: &record,
            version: None,
            title: None,
            text: "",
            lang: "simple",
            content_sha256: &[0; 32],
            n_chunks: 0,
            embedding_model: None,
        };
        store::memory::documents::insert(&mut conn, tenant_id, &[stored]).await.expect("a document");
    }
    let young = kept.put("young").await;
    let touched = kept.put("old, and put again").await;
    kept.world.env.clock.advance(TimeDelta::hours(2));
    kept.put("old, and put again").await;

    store::blobs::keep_all(&mut owner).await.expect("a backup begins");
    collect(&kept.env).await.expect("nothing to do");
    assert_eq!(kept.rows().await, 5, "removed under a backup");
    sqlx::raw_sql("select pg_advisory_unlock_all()").execute(&mut owner).await.expect("the backup ends");

    collect(&kept.env).await.expect("collected");
    assert_eq!(kept.read(&old).await, None, "named by another tenant alone");
    for key in [named, young, touched] {
        assert!(kept.read(&key).await.is_some());
    }
    assert_eq!((kept.objects().len(), kept.rows().await), (3, 5), "the rows of removed ones stay for a day");
    kept.put("young").await;
    kept.put("old, and put again").await;
    kept.world.env.clock.advance(TimeDelta::hours(25));
    kept.put("young").await;
    kept.put("old, and put again").await;
    collect(&kept.env).await.expect("collected");
    assert_eq!((kept.objects().len(), kept.rows().await), (3, 3));
}

/// I3.
/// The collector marks an object, asks for its removal, and stalls. Meanwhile the same bytes are put and named. The removal lands late.
#[tokio::test]
async fn a_removal_that_lands_late_hits_no_live_blob() {
    let (s3, port) = S3::start().await;
    let (world, endpoint) = (World::new().await, format!("http://127.0.0.1:{port}"));
    let variables = [
        ("AWS_ENDPOINT", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "who"),
        ("AWS_SECRET_ACCESS_KEY", "canary-7b3d"),
    ];
    let blobs = Blobs::in_bucket("memory/pre", &variables, world.env.clock.clone()).expect("a bucket");
    let env = Env { blobs: blobs.clone(), ..world.env.clone() };
    let (db, bytes) = (&world.env.db, Bytes::from_static(b"put, forgotten and put again"));
    let key = blobs.put(db, world.tenant_id, bytes.clone()).await.expect("put");
    let read = async || blobs.get(world.tenant_id, &key).await.expect("an answer");
    for round in 0..3 {
        world.env.clock.advance(TimeDelta::hours(49));
        s3.hold_deletes.store(true, std::sync::atomic::Ordering::SeqCst);
        let collecting = tokio::spawn({
            let env = env.clone();
            async move { collect(&env).await }
        });
        assert!(
            testkit::wait_until(std::time::Duration::from_secs(10), async || s3.n_held() == 1).await,
            "round {round}: the collector asked for nothing"
        );
        let mut admin = store::bench::administrator(&world.database.admin).await.expect("a connection");
        let idle = "select count(*) from pg_stat_activity where state = 'idle in transaction' and datname = current_database()";
        let n_idle: i64 = sqlx::query_scalar(idle).fetch_one(&mut admin).await.expect("a count");
        assert_eq!(n_idle, 0, "round {round}: a transaction waits for the store; the server ends it after ten seconds");
        if round == 1 {
            let end = "select count(pg_terminate_backend(pid)) from pg_locks l where locktype = 'advisory' and granted
                and database = (select oid from pg_database where datname = current_database())
                and (classid::bigint << 32 | objid::bigint) = 8390884927023640418";
            let n_ended: i64 = sqlx::query_scalar(end).fetch_one(&mut admin).await.expect("ended");
            assert_eq!(n_ended, 1, "the collector's session");
        }
        let again =
            tokio::time::timeout(std::time::Duration::from_secs(10), blobs.put(db, world.tenant_id, bytes.clone()));
        assert_eq!(again.await.expect("a writer waits for nobody").expect("put again"), key);
        s3.let_deletes_land();
        let collected = collecting.await.expect("the collector");
        assert_eq!(collected.is_err(), round == 1, "round {round}: {collected:?}");
        assert_eq!(s3.n_held(), 0);
        assert_eq!(read().await, Some(bytes.clone()), "round {round}: I3: put, acknowledged and gone");
        // What the other name still has goes a day later, and the one in use stays.
        world.env.clock.advance(TimeDelta::hours(25));
        blobs.put(db, world.tenant_id, bytes.clone()).await.expect("put again");
        collect(&env).await.expect("collected");
        assert_eq!(read().await, Some(bytes.clone()), "round {round}");
        assert_eq!(s3.objects.lock().expect("the objects").len(), 1, "round {round}: one name is in use");
    }
}

/// I3.
/// A blob that was removed and put again has its second name. A copy keeps that name, so what the restored rows call the old name is not the only one.
#[tokio::test]
async fn a_blob_that_was_revived_outlives_its_copy_and_the_next_rounds() {
    let kept = Kept::new().await;
    let key = kept.put("removed and put again").await;
    kept.world.env.clock.advance(TimeDelta::hours(25));
    collect(&kept.env).await.expect("removed");
    assert_eq!(kept.put("removed and put again").await, key);
    let restored = kept.dir.with_extension("restored");
    let copied = kept.env.blobs.copy_all(&Blobs::in_folder(&restored)).await.expect("copied");
    assert_eq!((copied.objects, copied.damaged.len()), (1, 0));
    std::fs::remove_dir_all(&kept.dir).expect("the disk is gone");
    std::fs::rename(&restored, &kept.dir).expect("restored");
    for _ in 0..3 {
        kept.world.env.clock.advance(TimeDelta::hours(25));
        let mut conn = kept.world.conn().await;
        store::blobs::touch(&mut conn, kept.world.env.clock.sql(), kept.world.tenant_id, &key, 21)
            .await
            .expect("in use");
        collect(&kept.env).await.expect("collected");
        assert_eq!(
            kept.read(&key).await.as_deref(),
            Some(&b"removed and put again"[..]),
            "I3: gone from the restored store"
        );
    }
    // A copy of an older program has the first name only. It is not removed as long as it is the only one.
    let second = kept.path(&key).with_extension("2");
    std::fs::rename(&second, kept.path(&key)).expect("its second name");
    let mut conn = kept.world.conn().await;
    let stray = "update tributary.blobs set stray_at = touched_at - interval '2 days'";
    sqlx::query(stray).execute(&mut *conn).await.expect("stray");
    collect(&kept.env).await.expect("collected");
    assert!(kept.read(&key).await.is_some(), "I3: the only object was removed");
}

#[tokio::test]
async fn putting_and_collecting_at_once_never_loses_what_was_put_last() {
    let kept = Kept::new().await;
    for _ in 0..20 {
        let key = kept.put("contested").await;
        let mut conn = kept.world.conn().await;
        let aged = "update tributary.blobs set touched_at = touched_at - interval '2 days'";
        sqlx::query(aged).execute(&mut *conn).await.expect("aged");
        let (collected, _) = tokio::join!(collect(&kept.env), kept.put("contested"));
        collected.expect("collected");
        assert!(kept.read(&key).await.is_some(), "put, acknowledged and gone");
    }
}

/// Enough of S3 for one bucket: objects by path, and a ledger of what was asked.
#[derive(Clone, Default)]
struct S3 {
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    ledger: Arc<Mutex<Vec<String>>>,
    /// Whether removals wait until they are told to land.
    hold_deletes: Arc<std::sync::atomic::AtomicBool>,
    held: Arc<Mutex<usize>>,
}

impl S3 {
    fn n_held(&self) -> usize {
        *self.held.lock().expect("held removals")
    }

    fn let_deletes_land(&self) {
        self.hold_deletes.store(false, std::sync::atomic::Ordering::SeqCst);
    }

    async fn start() -> (Self, u16) {
        let (s3, listener) = (Self::default(), tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port"));
        let port = listener.local_addr().expect("an address").port();
        let serving = s3.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let s3 = serving.clone();
                tokio::spawn(async move { s3.serve(socket).await });
            }
        });
        (s3, port)
    }

    async fn serve(&self, socket: tokio::net::TcpStream) -> std::io::Result<()> {
        let mut socket = BufReader::new(socket);
        loop {
            let (mut first, mut size, mut is_signed) = (String::new(), 0, false);
            if socket.read_line(&mut first).await? == 0 {
                return Ok(());
            }
            loop {
                let mut line = String::new();
                socket.read_line(&mut line).await?;
                let line = line.trim().to_ascii_lowercase();
                if line.is_empty() {
                    break;
                }
                if let Some(n) = line.strip_prefix("content-length: ") {
                    size = n.parse().unwrap_or(0);
                }
                is_signed |= line.starts_with("authorization: aws4-hmac-sha256 credential=who/");
            }
            let mut body = vec![0; size];
            socket.read_exact(&mut body).await?;
            let (method, target) = first.split_once(' ').unwrap_or_default();
            let target = target.split(' ').next().unwrap_or_default();
            self.ledger.lock().expect("the ledger").push(format!("{method} {target}"));
            if method == "DELETE" && self.hold_deletes.load(std::sync::atomic::Ordering::SeqCst) {
                *self.held.lock().expect("held removals") += 1;
                while self.hold_deletes.load(std::sync::atomic::Ordering::SeqCst) {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                *self.held.lock().expect("held removals") -= 1;
            }
            let (status, answer) =
                if is_signed { self.answer(method, target, body) } else { ("403 Forbidden", Vec::new()) };
            let mut head =
                format!("HTTP/1.1 {status}\r\nETag: \"1\"\r\nLast-Modified: Sun, 15 Nov 2026 12:00:00 GMT\r\n");
            head += &format!("Content-Length: {}\r\n\r\n", answer.len());
            socket.write_all(head.as_bytes()).await?;
            if method != "HEAD" {
                socket.write_all(&answer).await?;
            }
        }
    }

    fn answer(&self, method: &str, target: &str, body: Vec<u8>) -> (&'static str, Vec<u8>) {
        let mut objects = self.objects.lock().expect("the objects");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match method {
            "PUT" => {
                objects.insert(path.into(), body);
                ("200 OK", Vec::new())
            }
            "DELETE" => match objects.remove(path) {
                Some(_) => ("204 No Content", Vec::new()),
                None => ("404 Not Found", Vec::new()),
            },
            "GET" if query.contains("list-type=2") => {
                let key = |path: &str| path.trim_start_matches("/memory/").to_owned();
                let listed: String = objects
                    .iter()
                    .map(|(path, bytes)| {
                        format!(
                            "<Contents><Key>{}</Key><LastModified>2026-11-15T12:00:00.000Z</LastModified><ETag>\"1\"</ETag><Size>{}</Size></Contents>",
                            key(path),
                            bytes.len()
                        )
                    })
                    .collect();
                (
                    "200 OK",
                    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>").into(),
                )
            }
            _ => match objects.get(path) {
                Some(bytes) => ("200 OK", bytes.clone()),
                None => ("404 Not Found", Vec::new()),
            },
        }
    }
}

#[tokio::test]
async fn a_bucket_keeps_reads_lists_and_forgets_as_a_folder_does() {
    let (s3, port) = S3::start().await;
    let (world, endpoint) = (World::new().await, format!("http://127.0.0.1:{port}"));
    let variables = [
        ("AWS_ENDPOINT", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "who"),
        ("AWS_SECRET_ACCESS_KEY", "canary-7b3d"),
    ];
    let blobs = Blobs::in_bucket("memory/pre", &variables, world.env.clock.clone()).expect("a bucket");
    let env = Env { blobs: blobs.clone(), ..world.env.clone() };
    let bytes = Bytes::from_static(b"in a bucket");
    let key = blobs.put(&world.env.db, world.tenant_id, bytes.clone()).await.expect("put");
    assert_eq!(blobs.put(&world.env.db, world.tenant_id, bytes.clone()).await.expect("put again"), key);
    let name = format!("/memory/pre/{}/{key}", world.tenant_id);
    let asked = std::mem::take(&mut *s3.ledger.lock().expect("the ledger"));
    assert_eq!(asked, [format!("HEAD {name}"), format!("PUT {name}"), format!("HEAD {name}")]);
    assert_eq!(blobs.get(world.tenant_id, &key).await.expect("an answer"), Some(bytes));

    let dir = std::env::temp_dir().join(format!("tributary-blobs-{}", uuid::Uuid::now_v7().simple()));
    let copied = blobs.copy_all(&Blobs::in_folder(&dir)).await.expect("copied");
    assert_eq!(copied, Copied { objects: 1, bytes: 11, damaged: vec![] });
    std::fs::remove_dir_all(&dir).expect("removed");

    world.env.clock.advance(TimeDelta::hours(25));
    collect(&env).await.expect("collected");
    assert!(s3.objects.lock().expect("the objects").is_empty());
    assert_eq!(blobs.get(world.tenant_id, &key).await.expect("an answer"), None);
}
