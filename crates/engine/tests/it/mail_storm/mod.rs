//! Mailboxes in a storm: letters come, move and go, folders are renamed, notices are lost, doubled and late, the provider refuses and forgets, and
//! workers are killed. What is left in memory is what is in the mailbox, and the line that says so is right.
//!
//! Every fault comes from a seed, which is printed: `TEST_SEED=<seed>` has the same ones again.

mod gmail;
mod hooks;
mod letters;
mod mailbox;
mod outlook;
mod proof;
mod verdict;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use domain::{Clock, SourceId, SourceStatus, Transport};
use engine::pull::Provider;
use fakes::Fakes;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use testkit::process::Worker;
use testkit::sources::{GMAIL, OUTLOOK, settings};
use testkit::{Sources, cluster, is_slow, wait_until};

use self::gmail::AtGmail;
use self::hooks::{Address, Hooks};
use self::mailbox::{Mailbox, Tally, Telling};
use self::outlook::AtOutlook;
use self::verdict::{Verdict, verdict};
use crate::programs;

/// Workers at the same time.
const WORKERS: usize = 2;
/// The longest time that a round waits for requests, and one in which nobody is told of anything.
const ROUND: Duration = Duration::from_secs(3);
const QUIET: Duration = Duration::from_millis(400);

/// The longest wait for a mailbox to be read: what nobody told of is read after a minute, and a provider that kept failing is left alone for minutes.
fn patience() -> Duration {
    Duration::from_secs(if is_slow() { 1_800 } else { 400 })
}

/// F1, F17, F27, F28, I1, I2, I5.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_storm_memory_is_what_gmail_has() {
    storm(GMAIL, AtGmail::open).await;
}

/// F1, F17, F27, F28, I1, I2, I5.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_storm_memory_is_what_outlook_has() {
    storm(OUTLOOK, AtOutlook::open).await;
}

/// The rounds in which something rare happens.
struct Plan {
    n_before: usize,
    n_rounds: usize,
    n_acts: usize,
    kills: BTreeSet<usize>,
    expiries: BTreeSet<usize>,
    unsubscribed: usize,
}

impl Plan {
    fn of(dice: &mut StdRng) -> Self {
        // Of all letters a quarter comes in during the storm.
        let (n_before, n_rounds, n_acts, n_kills, n_expiries) =
            if is_slow() { (7_500, 100, 70, 40, 4) } else { (450, 24, 17, 8, 2) };
        let mut rounds = |n: usize, from: usize| {
            let mut chosen = BTreeSet::new();
            while chosen.len() < n {
                chosen.insert(dice.random_range(from..n_rounds));
            }
            chosen
        };
        // Places are lost once there are some; workers die from the beginning.
        let (kills, expiries) = (rounds(n_kills, 0), rounds(n_expiries, n_rounds / 3));
        Self {
            n_before,
            n_rounds,
            n_acts,
            kills,
            expiries,
            unsubscribed: dice.random_range(n_rounds / 3..n_rounds / 2),
        }
    }
}

/// A mailbox that is connected, with workers that read it.
struct Storm {
    t: Sources,
    id: SourceId,
    provider: Provider,
    mailbox: Box<dyn Mailbox>,
    workers: Vec<Worker>,
    /// The settings of a worker, beside those that lead to the fakes.
    more: Vec<(&'static str, String)>,
    tally: Tally,
    _hooks: Hooks,
}

impl Storm {
    async fn new(provider: Provider, at: fn(&Fakes) -> Box<dyn Mailbox>, dice: &mut StdRng, n_before: usize) -> Self {
        let (fakes, address) = (Fakes::start().await, Address::new().await);
        let more = vec![
            ("MAILBOX_HOOK_URL", address.url()),
            ("MAILBOX_REST_SECS", "0".into()),
            ("MAILBOX_SAFETY_SECS", "60".into()),
            ("PULL_RATE_FACTOR", "200".into()),
            ("GMAIL_PUBSUB_TOPIC", "projects/fakes/topics/gmail".into()),
            ("GMAIL_PUBSUB_TOKEN", "correct-horse-battery".into()),
            ("GMAIL_INITIAL_SYNC_MAX_THREADS", "100000".into()),
            ("OUTLOOK_INITIAL_SYNC_MAX_MESSAGES", "100000".into()),
        ];
        fakes.pubsub().push_to(&format!("{}/webhooks/gmail", address.url()), "correct-horse-battery");
        let mut mailbox = at(&fakes);
        mailbox.fill(dice, n_before);
        let flag = |name: &str| format!("--{}", name.to_lowercase().replace('_', "-"));
        let flags: Vec<String> = more.iter().flat_map(|(name, value)| [flag(name), value.clone()]).collect();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let t = Sources::with(cluster::cloned(), Clock::System, fakes, &flags).await;
        let hooks = address.listen(&t.world.env);
        let id = t.connect(provider).await;
        let mut storm =
            Self { t, id, provider, mailbox, workers: Vec::new(), more, tally: Tally::default(), _hooks: hooks };
        storm.workers = (0..WORKERS).map(|_| storm.worker()).collect();
        storm
    }

    fn worker(&self) -> Worker {
        let fakes = settings(&self.t.fakes);
        let fakes = fakes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let more = self.more.iter().map(|(name, value)| (*name, value.as_str()));
        let env: Vec<(&str, &str)> = fakes.chain(more).chain([("CRASHLING_REAL", "1")]).collect();
        programs::crashling(&self.t.world.database.url, None, &env)
    }

    /// The times have come for which nobody waits here: of schedules, of subscriptions and syncs that wait for the next try, and of
    /// days that are counted again. A person whose mailbox lost its token connects it anew.
    async fn hurry(&mut self) {
        for due in [
            // Those that a worker which starts has locked come next time.
            "update tributary.schedules set next_run_at = now() where name in (select name from tributary.schedules
             where (name like 'mail_%' or name in ('takeover', 'syncs')) and next_run_at > now() for update skip locked)",
            "update connected_sources set subscription_due_at = null where subscription_failures > 0 and subscription_due_at > now()",
            "update pgmq.q_ingestion_queue set vt = now() where vt > now() and (headers ->> 'by') is null",
            "update pgmq.q_mailbox_check set vt = now() where vt > now() and (headers ->> 'by') is null",
        ] {
            self.sql(due).await;
        }
        if self.t.source(self.id).await.status == SourceStatus::TokenRefreshFailed {
            let again = self.t.connect_over(self.provider, Transport::Rest, Some(self.id)).await;
            self.tally.reconnected += usize::from(again.is_ok()); // or they try again later
        }
    }

    async fn round(&mut self, dice: &mut StdRng, plan: &Plan, round: usize) {
        let telling = Telling::of(dice);
        self.mailbox.tell(telling);
        if dice.random_bool(0.6) {
            self.mailbox.trouble(dice, &mut self.tally);
        }
        if plan.expiries.contains(&round) {
            self.mailbox.expire();
            self.tally.expiries += 1;
        }
        if round == plan.unsubscribed {
            self.mailbox.unsubscribe();
        }
        if round == plan.unsubscribed + 2 {
            self.sql("update connected_sources set subscription_due_at = null").await; // a day has passed
        }
        for _ in 0..plan.n_acts {
            self.mailbox.act(dice, &mut self.tally);
            self.tally.told(telling);
        }
        self.mailbox.release();
        // In the middle of what the workers are at, counted in requests.
        let (n_requests, victim) = (dice.random_range(1..=14), dice.random_range(0..WORKERS));
        let before = self.t.fakes.requests("/");
        let limit = if telling == Telling::NotAtAll { QUIET } else { ROUND };
        wait_until(limit, async || self.t.fakes.requests("/") >= before + n_requests).await;
        if plan.kills.contains(&round) {
            self.workers[victim].signal(Signal::KILL);
            self.workers[victim] = self.worker();
            self.tally.kills += 1;
        }
        self.hurry().await;
    }

    async fn sql(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&mut *self.t.world.conn().await).await.expect("done");
    }

    /// Nothing waits to be read.
    async fn is_settled(&self) -> bool {
        let waiting = "select (select count(*) from pending_syncs) + (select count(*) from pgmq.q_ingestion_queue)
            + (select count(*) from sync_jobs where status in ('pending', 'running', 'paused'))";
        self.t.count(waiting).await == 0
    }

    async fn verdict(&self) -> Verdict {
        verdict(&self.t, self.id, &self.mailbox.truth()).await
    }

    /// All that may keep a sync waiting.
    async fn waits(&self) -> Vec<String> {
        let all = "select to_jsonb(p)::text from pending_syncs p union all select to_jsonb(m)::text from pgmq.q_ingestion_queue m
            union all select to_jsonb(m)::text from tributary.parked m
            union all select to_jsonb(g)::text from tributary.gates g where closed_until is not null";
        sqlx::query_scalar(all).fetch_all(&mut *self.t.world.conn().await).await.expect("waits")
    }

    /// Waits until this is true, while the times come for which nobody waits.
    async fn until(&mut self, limit: Duration, is_true: impl AsyncFn(&Self) -> bool) -> bool {
        let mut n_looks = 0;
        wait_until(limit, async || {
            if n_looks % 25 == 0 {
                self.hurry().await;
            }
            n_looks += 1;
            is_true(self).await
        })
        .await
    }

    /// Waits until everything was read once, so that what follows is read from its changes.
    async fn is_read_once(&mut self, seed: u64) {
        let is_read =
            self.until(patience(), async |storm: &Self| storm.t.source(storm.id).await.cursors.is_some()).await;
        assert!(
            is_read,
            "I5, {}, seed {seed}: the first sync does not end: {:?} {:?}",
            self.provider,
            self.t.jobs(self.id).await,
            self.waits().await
        );
    }

    /// Waits until memory is what the mailbox has.
    async fn agrees(&mut self, seed: u64, when: &str) -> Verdict {
        let agrees = self
            .until(patience(), async |storm: &Self| storm.is_settled().await && storm.verdict().await.is_clean())
            .await;
        let verdict = self.verdict().await;
        let job = self.t.jobs(self.id).await.into_iter().next();
        let source = self.t.source(self.id).await;
        assert!(
            agrees && verdict.is_clean(),
            "I1 I2 I5, {}, seed {seed}, {when}: {verdict}; {:?} {:?}; the last sync: {job:?}; it waits for {:?}",
            self.provider,
            source.status,
            source.status_message,
            self.waits().await
        );
        verdict
    }
}

async fn storm(provider: Provider, at: fn(&Fakes) -> Box<dyn Mailbox>) {
    let usual = if is_slow() { u64::from(rand::random::<u32>()) } else { 20_261_118 };
    let seed: u64 = std::env::var("TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    println!("{provider}: TEST_SEED={seed}");
    let (begun, mut dice) = (Instant::now(), StdRng::seed_from_u64(seed));
    let plan = Plan::of(&mut dice);
    let mut storm = Storm::new(provider, at, &mut dice, plan.n_before).await;
    for round in 0..plan.n_rounds {
        if round == plan.n_rounds / 3 {
            storm.is_read_once(seed).await;
        }
        storm.round(&mut dice, &plan, round).await;
    }
    storm.mailbox.calm();
    storm.mailbox.receive(&mut dice); // the last one, which is told of
    let verdict = storm.agrees(seed, "after the storm").await;
    storm.tally.letters = storm.mailbox.n_letters();
    println!("{provider}, seed {seed}: {}; memory: {verdict}; {:.1?}", storm.tally, begun.elapsed());
    storm.prove(&mut dice, seed).await;
    println!("{provider}, seed {seed}: counted, broken by hand and mended after {:.1?}", begun.elapsed());
}
