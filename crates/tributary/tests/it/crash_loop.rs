//! Sessions, helpers, the postmaster and the program killed in every mix, under load: it is ready soon after its server accepts connections.
//! `SOAK_SEED` repeats a run, and `SOAK_ROUNDS=1000` makes a long one that is measured strictly: a round takes some five seconds, and
//! nothing else should run on the machine.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::json;
use testkit::cluster::kill;
use testkit::{is_slow, wait_until};
use tokio::task::JoinSet;

use crate::app::{App, Folder, client, command, free_port, get, run};
use crate::crashes::{helpers, is_accepting, is_running, postmaster, sessions, setting};

/// How long it may take from an accepting server to a ready program. A test that runs beside others gets more.
fn ready_limit() -> Duration {
    let runs_alone = std::env::var_os("SOAK_ROUNDS").is_some();
    Duration::from_secs(if runs_alone { 3 } else { 15 })
}

/// Callers that write, search and ask whether it is ready, until dropped. Their answers do not matter.
fn load(url: &str, key: &str) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for nth in 0..6 {
        let (http, url, key) = (client(), url.to_owned(), key.to_owned());
        callers.spawn(async move {
            for n in 0_u64.. {
                let asked = match nth {
                    0 | 1 => {
                        let text = format!("Ship {n} of caller {nth} leaves the harbour with copper windows.");
                        let document = json!({ "external_id": format!("ship {nth}"), "text": text });
                        http.post(format!("{url}/api/v1/documents")).json(&document)
                    }
                    2 | 3 => http.get(format!("{url}/api/v1/search?q=harbour+{n}")),
                    _ => http.get(format!("{url}/readyz")),
                };
                let _ = asked.bearer_auth(&key).send().await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
    callers
}

/// Which processes a round kills.
#[derive(Debug)]
struct Mix {
    session: bool,
    /// Another process of the server's, perhaps the one that recovers.
    helper: bool,
    server: bool,
    program: bool,
}

impl Mix {
    fn choose(rng: &mut StdRng) -> Self {
        let bits: u32 = rng.random_range(1..16);
        Self { session: bits & 1 > 0, helper: bits & 2 > 0, server: bits & 4 > 0, program: bits & 8 > 0 }
    }
}

/// F3, F4, I6.
#[tokio::test(flavor = "multi_thread")]
async fn after_any_crash_it_is_ready_soon_after_its_server_accepts() {
    let seed = setting("SOAK_SEED", 20_261_116);
    let rounds = setting("SOAK_ROUNDS", if is_slow() { 60 } else { 6 });
    let mut rng = StdRng::seed_from_u64(seed);
    let (folder, port) = (Folder::new(), free_port());
    let mut app = App::start(command(&folder.0, port), &["up"], port).await;
    let url = app.url.clone();
    let (made, key, told) = run(command(&folder.0, port).args(["key", "create", "load"]));
    assert!(made.status.success(), "{told}");
    let _load = load(&url, key.trim());
    let (mut slowest, mut sum, mut late) = (Duration::ZERO, Duration::ZERO, Vec::new());
    for round in 1..=rounds {
        let mix = Mix::choose(&mut rng);
        let what = format!("seed {seed}, round {round}: {mix:?}");
        // With sessions: one that was killed is felt by their end.
        let mut had = Vec::new();
        let is_used = wait_until(Duration::from_secs(30), async || {
            had = postmaster(&folder).map(sessions).unwrap_or_default();
            !had.is_empty()
        });
        assert!(is_used.await, "{what}: nobody uses the server");
        let old = postmaster(&folder).expect("a server");
        if mix.session
            && let Some(pid) = had.choose(&mut rng)
        {
            kill(*pid, Signal::KILL);
        }
        if mix.helper {
            pause(&mut rng).await;
            // Of the server that runs by now, if there is one.
            if let Some(pid) = postmaster(&folder).map(helpers).unwrap_or_default().choose(&mut rng) {
                kill(*pid, Signal::KILL);
            }
        }
        if mix.server {
            pause(&mut rng).await;
            kill(postmaster(&folder).unwrap_or(old), Signal::KILL);
        }
        if mix.program {
            app.signal(Signal::KILL);
            app.ended_within(Duration::from_secs(5)).await.expect("it was killed");
            app = App::spawn(command(&folder.0, port), &["up"], port);
        }
        let is_server_hurt = mix.session || mix.helper || mix.server;
        if is_server_hurt {
            let is_felt = wait_until(Duration::from_secs(30), async || !had.iter().any(|pid| is_running(*pid))).await;
            assert!(is_felt, "{what}: sessions outlive their server");
        }
        let is_up = wait_until(Duration::from_secs(60), async || {
            (!is_server_hurt || postmaster(&folder).is_some_and(|new| new != old)) && is_accepting(&folder)
        });
        assert!(is_up.await, "{what}: the server does not come back:\n{}", app.printed());
        let (mut server, mut begun) = (postmaster(&folder), Instant::now());
        let is_ready = wait_until(Duration::from_secs(90), async || {
            let now = postmaster(&folder);
            if now != server {
                // It felt the last kill only after it had accepted. The time begins when the next one accepts.
                if !is_accepting(&folder) {
                    return false;
                }
                (server, begun) = (now, Instant::now());
            }
            get(&url, "/readyz").await.0 == 200
        })
        .await;
        let took = begun.elapsed();
        (slowest, sum) = (slowest.max(took), sum + took);
        assert!(is_ready, "{what}: not ready after {took:?}:\n{}", app.printed());
        if took >= ready_limit() {
            late.push(format!("{what}: ready after {took:.1?}"));
        }
        if round % 50 == 0 {
            println!("{what}: {slowest:.1?} at most so far, {} late", late.len());
        }
    }
    let mean = sum / u32::try_from(rounds).unwrap_or(1);
    println!(
        "seed {seed}: {rounds} crashes, ready {slowest:.1?} after the server accepted at most, {mean:.1?} on average"
    );
    assert!(late.is_empty(), "{}", late.join("\n"));
}

/// Into the middle of what the last kill led to.
async fn pause(rng: &mut StdRng) {
    tokio::time::sleep(Duration::from_millis(rng.random_range(0..400))).await;
}
