//! The master key is rotated while everything runs: no secret is unreadable at any moment, wherever the rotation dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use domain::{Scope, Secret};
use serde_json::{Value, json};
use store::PgConnection;
use store::vault::{Vault, new_key};
use testkit::{World, wait_until};
use uuid::Uuid;

use crate::app::{App, Folder, client, command, free_port, run};

/// More than two bites of them.
const N: usize = 1_200;
const ROTATE: &[&str] = &["key", "rotate-master"];

async fn tributary(
    world: &World,
    folder: &Folder,
    env: &[(&str, &str)],
    args: &'static [&'static str],
) -> (bool, String) {
    let mut tributary = command(&folder.0, 1);
    tributary.env("DATABASE_URL", &world.database.url).envs(env.iter().copied()).args(args);
    // On a thread of its own: the load goes on meanwhile.
    let ended = tokio::task::spawn_blocking(move || run(&mut tributary));
    let (output, said, told) = ended.await.expect("its end");
    (output.status.success(), said + &told)
}

async fn put(world: &World, vault: &Vault) -> Vec<Uuid> {
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let mut ids = Vec::new();
    for nth in 0..N {
        let id = Uuid::now_v7();
        vault.put(&mut tx, world.tenant_id, id, &Secret::new(format!("secret {nth}"))).await.expect("sealed");
        ids.push(id);
    }
    tx.commit().await.expect("committed");
    ids
}

/// Opens every secret with the keys that a process has which starts now.
async fn check(world: &World, vault: &Vault, ids: &[Uuid], when: &str) {
    let mut conn = world.conn().await;
    for (nth, id) in ids.iter().enumerate() {
        let secret = vault.get(&mut conn, world.tenant_id, *id).await;
        let secret = secret.unwrap_or_else(|error| panic!("{when}: {error}")).expect("a row");
        assert_eq!(secret.reveal(), format!("secret {nth}"), "{when}");
    }
}

async fn n_with(world: &World, key_id: &str) -> i64 {
    let sql = "select count(*) from tributary.vault where master_key_id = $1";
    sqlx::query_scalar(sql).bind(key_id).fetch_one(&mut *world.conn().await).await.expect("a number")
}

/// S24: under load, and killed at every step.
#[tokio::test(flavor = "multi_thread")]
async fn under_load_the_master_key_is_rotated_without_one_failed_request() {
    let (world, folder, port) = (World::now().await, Folder::new(), free_port());
    let path = folder.0.join("master.key");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let old = Vault::open_file(&path).expect("a key").key_id();
    let ids = put(&world, &Vault::open_file(&path).expect("keys")).await;
    let mut serve = command(&folder.0, port);
    serve.env("DATABASE_URL", &world.database.url);
    let app = App::start(serve, &["serve"], port).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let ask = async |method: &str, path: String, body: Option<Value>| {
        let request = client().request(method.parse().expect("a method"), format!("{}{path}", app.url));
        let request = body.iter().fold(request.bearer_auth(key.reveal()), |request, body| request.json(body));
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap_or_default())
    };
    let (status, channel) =
        ask("POST", "/api/v1/channels".into(), Some(json!({ "name": "shop", "max_per_minute": null }))).await;
    assert_eq!(status, 201, "{channel}");

    // Secrets are opened, replaced and used all the time.
    let is_over = Arc::new(AtomicBool::new(false));
    let n_asked = AtomicUsize::new(0);
    let load = async {
        let mut wrong = Vec::new();
        let id = channel["id"].as_str().expect("an id");
        while !is_over.load(Relaxed) {
            let (status, rotated) = ask("POST", format!("/api/v1/channels/{id}/rotate"), Some(json!({}))).await;
            let url = rotated["url"].as_str().unwrap_or_default().to_owned();
            let bearer = rotated["bearer"].as_str().unwrap_or_default().to_owned();
            if status != 200 {
                wrong.push(format!("rotate: {status} {rotated}"));
                continue;
            }
            let door = url.find("/ingest/").map_or(String::new(), |at| format!("{}{}", app.url, &url[at..]));
            let sent =
                client().post(&door).bearer_auth(bearer).json(&json!({ "type": "note", "content": "x" })).send().await;
            let status = sent.expect("an answer").status().as_u16();
            if status != 202 {
                wrong.push(format!("{door}: {status}"));
            }
            n_asked.fetch_add(2, Relaxed);
        }
        wrong
    };
    let rotate = async {
        for crash in ["rotate.key_written:abort", "rotate.before_commit:abort:2", "rotate.resealed:abort"] {
            let (is_well, said) = tributary(&world, &folder, &[("TRIBUTARY_CRASH", crash)], ROTATE).await;
            assert!(!is_well, "{crash} was never reached: {said}");
            check(&world, &Vault::open_file(&path).expect("keys"), &ids, crash).await;
            // One round of the load may have begun before the crash; the second is whole.
            let asked_by_then = n_asked.load(Relaxed);
            let goes_on = wait_until(Duration::from_secs(20), async || n_asked.load(Relaxed) >= asked_by_then + 4);
            assert!(goes_on.await, "after {crash} no request is answered");
        }
        let (is_well, said) = tributary(&world, &folder, &[], ROTATE).await;
        assert!(is_well && said.contains("sealed with master key"), "{said}");
        is_over.store(true, Relaxed);
    };
    let (wrong, ()) = tokio::join!(load, rotate);
    let n_asked = n_asked.load(Relaxed);
    println!("{N} secrets were sealed again in four runs; {n_asked} requests meanwhile, {} failed", wrong.len());
    assert!(wrong.is_empty() && n_asked > 10, "{n_asked} requests, {wrong:?}");
    let now = Vault::open_file(&path).expect("keys");
    assert_eq!((now.key_ids().len(), now.opens(&old)), (1, false), "the old key is still accepted");
    check(&world, &now, &ids, "afterwards").await;
    assert_eq!(n_with(&world, &old).await, 0);
    // The old key is kept aside, for old backups, and is its owner's alone.
    let aside = std::fs::read_dir(&folder.0).expect("the folder").flatten().map(|entry| entry.path());
    let aside: Vec<_> = aside.filter(|path| path.to_string_lossy().contains("master.key.old-")).collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert!(Vault::open_file(&aside[0]).expect("keys").opens(&old));
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(&aside[0]).expect("a file").permissions().mode() & 0o777, 0o600);
    // Once more: another new key.
    let once = now.key_id();
    assert!(tributary(&world, &folder, &[], ROTATE).await.0);
    assert_ne!(Vault::open_file(&path).expect("keys").key_id(), once);
}

/// S24: also what a process of the old key stores late.
#[tokio::test(flavor = "multi_thread")]
async fn with_keys_from_the_environment_the_old_one_stands_beside_the_new_one() {
    let (world, folder) = (World::now().await, Folder::new());
    let (old, new) = (new_key(), new_key());
    let ids = put(&world, &Vault::new(&old).expect("a key")).await;
    let (is_well, said) = tributary(&world, &folder, &[("MASTER_KEY", old.reveal())], ROTATE).await;
    assert!(!is_well && said.contains("MASTER_KEY_OLD"), "{said}");
    // Without the old one nothing is lost either.
    let (is_well, said) =
        tributary(&world, &folder, &[("MASTER_KEY", new.reveal()), ("MASTER_KEY_OLD", new_key().reveal())], ROTATE)
            .await;
    assert!(!is_well && said.contains("1200 secrets open with no key"), "{said}");
    check(&world, &Vault::new(&old).expect("a key"), &ids, "after a rotation without the old key").await;
    let both = [("MASTER_KEY", new.reveal()), ("MASTER_KEY_OLD", old.reveal())];
    let (is_well, said) = tributary(&world, &folder, &both, ROTATE).await;
    assert!(is_well && said.contains("1200 secrets are sealed"), "{said}");
    check(&world, &Vault::new(&new).expect("a key"), &ids, "with the new key alone").await;
    let (is_well, said) = tributary(&world, &folder, &both, ROTATE).await;
    assert!(is_well && said.contains("0 secrets are sealed"), "{said}");
    // A process that still seals with the old one, or slept while it did, stores nothing.
    let late = async |key: &Secret| {
        let mut tx = world.env.db.begin().await.expect("a transaction");
        let vault = Vault::new(key).expect("a key");
        vault.put(&mut tx, world.tenant_id, ids[0], &Secret::new("secret 0")).await?;
        tx.commit().await
    };
    let refused = late(&old).await.expect_err("a retired key sealed").to_string();
    assert!(refused.contains("was retired by a rotation"), "{refused}");
    let mut conn = world.conn().await;
    let seals = async |key: &Secret, conn: &mut PgConnection| Vault::new(key).expect("a key").check_seals(conn).await;
    seals(&old, &mut conn).await.expect_err("a provider would be asked for tokens that cannot be stored");
    seals(&new, &mut conn).await.expect("the present key seals");
    drop(conn);
    check(&world, &Vault::new(&new).expect("a key"), &ids, "after a late process").await;
    // It can be put in front again.
    let back = [("MASTER_KEY", old.reveal()), ("MASTER_KEY_OLD", new.reveal())];
    let (is_well, said) = tributary(&world, &folder, &back, ROTATE).await;
    assert!(is_well && said.contains("1200 secrets are sealed"), "{said}");
    late(&old).await.expect("the key seals again");
    assert!(late(&new).await.is_err(), "and the other one does not");
    check(&world, &Vault::new(&old).expect("a key"), &ids, "with the first key again").await;
}
