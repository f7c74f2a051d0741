//! Everything at once, while one process after the other is killed: senders, agents, syncs, searches and open pages against two servers,
//! two workers and an embedded PostgreSQL. In the end the actors' own ledgers equal what is stored.
//!
//! `scripts/soak --seed N --minutes M` runs it for longer. The same seed gives the same schedule of kills.

mod actors;
mod cast;
mod verdict;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use domain::{Clock, Scope};
use fakes::Fakes;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use store::embedded::Embedded;
use testkit::cluster::{Database, bin_dir};
use testkit::sources::{DRIVE, HUBSPOT, settings};
use testkit::{Sources, wait_until};

use self::actors::Story;
use self::cast::{Cast, Victim};
use crate::app::{Folder, get};
use crate::crashes::setting;
use crate::intake::add_channel;

/// The longest time in which no event may be acknowledged, on a machine that may be busy with other tests: it tells apart what is slow
/// and what does not come back. A run prints the time that it took.
const LONGEST_GAP: Duration = Duration::from_secs(60);
/// A lock of an agent that died ends five minutes after its last heartbeat.
const LOCKS_END: Duration = Duration::from_secs(8 * 60);

/// F1, F3, F4, F27, I1, I2, I5, I6, S13.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_killed_and_whenever_every_ledger_equals_what_is_stored() {
    let (seed, seconds) = (setting("SOAK_SEED", 20_261_116), setting("SOAK_SECONDS", default_seconds()));
    println!("seed {seed}, {seconds} s");
    let begun = Instant::now();
    let fakes = Fakes::with_fixtures().await;
    let mut cast = Cast::start(&settings(&fakes)).await;
    let story = prepare(&mut cast, &fakes).await;
    let actors = story.begin();
    let mut rng = StdRng::seed_from_u64(seed);
    let is_short = seconds < 60;
    // What a killed device held is locked for five minutes, which a short run does not wait for.
    let victims: Vec<Victim> = Victim::ALL.into_iter().filter(|victim| !is_short || *victim != Victim::Agent).collect();
    cast.play(&mut rng, Duration::from_secs(seconds), &victims).await;

    story.end();
    let mut are_done = false;
    let ending = wait_until(Duration::from_secs(200), async || {
        cast.revive().await;
        are_done = actors.iter().all(tokio::task::JoinHandle::is_finished);
        are_done
    });
    assert!(ending.await, "an actor never ended:\n{}", last_lines(&cast.printed()));
    for actor in actors {
        actor.await.expect("an actor that ended well");
    }
    let is_up = wait_until(Duration::from_secs(60), async || {
        cast.revive().await;
        get(&story.urls[0], "/readyz").await.0 == 200 && get(&story.urls[1], "/readyz").await.0 == 200
    });
    assert!(is_up.await, "I6: it does not come back:\n{}", last_lines(&cast.printed()));
    story.sync().await; // for what was changed after the last one
    let t = at_its_server(&cast.folder, &fakes).await;
    if is_short {
        end_locks(&t).await;
    }
    let verdict = verdict::verdict(&t, &story, &mut cast, LOCKS_END).await;

    let counts = &story.counts;
    let gap = Duration::from_millis(counts.slowest_ms.load(SeqCst));
    println!("kills: {:?}; {} restarts", cast.kills, cast.restarts);
    cast.gave_up.iter().for_each(|((victim, said), n)| println!("  {victim:?} ended by itself {n} times: {said}"));
    println!(
        "answered: {} searches, {} pages, {} notices, {} syncs; not answered: {}",
        counts.searches.load(SeqCst),
        counts.pages.load(SeqCst),
        counts.notices.load(SeqCst),
        counts.syncs.load(SeqCst),
        counts.unanswered.load(SeqCst)
    );
    println!("slowest recovery: {gap:.1?} without an acknowledgement; {:.0?} in all", begun.elapsed());
    println!("seed {seed}: {verdict}");
    assert!(verdict.is_clean(), "seed {seed}: {verdict}\n{}", last_lines(&cast.printed()));
    // The others wait for a server that `up` starts; started while there is none, they say so and end.
    let has_up_ended = cast.gave_up.keys().any(|(victim, _)| *victim == Victim::Up);
    assert!(!has_up_ended, "seed {seed}: I6: up ended by itself: {:?}", cast.gave_up);
    assert!(gap < LONGEST_GAP, "seed {seed}: I6: nothing was acknowledged for {gap:?}");
    assert!(counts.searches.load(SeqCst) > 0 && counts.pages.load(SeqCst) > 0 && counts.notices.load(SeqCst) > 0);
}

fn default_seconds() -> u64 {
    if testkit::is_slow() { 180 } else { 8 }
}

/// A channel, keys and two connected sources; then the other processes.
async fn prepare(cast: &mut Cast, fakes: &Fakes) -> Arc<Story> {
    let t = at_its_server(&cast.folder, fakes).await;
    let tenant_id = t.world.tenant_id;
    let (_, opens) = add_channel(&t.world, tenant_id, None).await;
    let (_, key) = t.world.caller(tenant_id, &[Scope::Read, Scope::Write]).await;
    let mut conn = t.world.conn().await;
    let person = store::people::ensure(&mut conn, tenant_id, "ann@soak.test").await.expect("a person");
    let scopes = [Scope::Agent];
    let (_, agent_key) =
        store::keys::create(&mut conn, tenant_id, Some(person), "device", &scopes).await.expect("a key");
    drop(conn);
    let sources = [t.connect(HUBSPOT).await, t.connect(DRIVE).await];
    cast.complete(&agent_key);
    let urls = cast.urls();
    let is_up = wait_until(Duration::from_secs(60), async || get(&urls[1], "/readyz").await.0 == 200).await;
    assert!(is_up, "the second server does not come up:\n{}", cast.printed());
    Arc::new(Story::new(urls, opens, [key, agent_key], sources, fakes.clone()))
}

/// The embedded server of this folder, wherever it listens now.
async fn at_its_server(folder: &Folder, fakes: &Fakes) -> Sources {
    let embedded = Embedded::new(&folder.0, &bin_dir("PG_BIN_DIR")).expect("the pinned PostgreSQL");
    let running = embedded.find().await.expect("a folder of ours").expect("a running server");
    let database = Database {
        name: store::embedded::DATABASE.to_owned(),
        url: running.login.uri().reveal().to_owned(),
        admin: running.admin,
        login: running.login,
    };
    Sources::with(database, Clock::System, fakes.clone(), &[]).await
}

/// Says that five minutes have passed for claims of devices whose answer was lost with a process. What built-in agents held goes back by itself.
async fn end_locks(t: &Sources) {
    let old = "update activities set locked_at = now() - interval '6 minutes'
        where processing_status = 'processing' and locked_worker is null";
    for sql in [old, "select unlock_stale_locks()"] {
        sqlx::raw_sql(sql).execute(&mut *t.world.conn().await).await.expect("done");
    }
}

fn last_lines(printed: &str) -> String {
    let lines: Vec<&str> = printed.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
