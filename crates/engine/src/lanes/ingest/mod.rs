//! Reads a source: one job, page by page, each page's records and the place of the next one in one commit. While a page is written the next
//! ones are fetched.

mod bring;
mod fetch;
mod quota;
mod trouble;
mod write;

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use connectors::pull::{Page, PullError, Reach, last, more};
use domain::{Fault, JobId, JobKind, JobStatus, SourceId, SourceStatus, TenantId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::crash::{self, Point};
use store::jobs::{self, Job, Progress};
use store::mail::letters;
use store::sources::{self, Source, Tone};
use store::{failures, gates};

use self::fetch::Reader;
use crate::Env;
use crate::lanes::client_facts::ClientFactsOf;
use crate::lanes::queue_of;
use crate::mail::{self, check, pending, subscriptions};
use crate::pull::jobs::next_sync;
use crate::pull::tokens::{NoToken, Token};
use crate::work::{Lane, Lease, Outcome};

/// After so long a job makes room for others; it goes on where it is.
const TURN: Duration = Duration::from_secs(60);
/// Records that one commit takes, if the provider is that fast.
const MOST_ITEMS: usize = 500;
/// So many records that a pass has met are forgotten in one commit.
const MOST_FORGOTTEN: i64 = 5_000;
/// A provider that loses our place oftener than that in one job is not well.
const MOST_RESTARTS: u32 = 3;

/// Providers tell of changes that their own lists do not have yet.
const LAG: TimeDelta = TimeDelta::seconds(20);

/// The name under which an unreadable answer is kept, among the records that could not be read, until a job comes to its end.
const UNREADABLE: &str = "answer";

/// One message of `ingestion_queue`.
#[derive(Serialize, Deserialize)]
pub struct Ingest {
    pub source_id: SourceId,
    pub job_id: JobId,
    pub kind: JobKind,
}

/// The progress of a job. Stored with every page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Checkpoint {
    phase: Phase,
    /// The place from which the connector goes on.
    place: Option<Value>,
    /// A delta's start; a full pass's: from where the next delta starts.
    cursor: Option<Value>,
    /// The source was never read to the end: caps apply.
    is_first: bool,
    /// Of a mailbox: a full pass that was capped has read all that came in from then on.
    read_from: Option<DateTime<Utc>>,
    /// The time at which the pass began.
    began_at: Option<DateTime<Utc>>,
    /// The last document that was looked for.
    after: String,
    /// Just these records.
    items: Vec<String>,
    /// The number of times it began from the start because the provider had lost our place.
    restarts: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Phase {
    #[default]
    Begin,
    Pull,
    /// Documents that a full pass did not meet are looked for.
    Reconcile,
    Finish,
}

impl Lane for Ingest {
    const NAME: &'static str = "ingestion_queue";
    const MAX_ATTEMPTS: i32 = 5;
    const LEASE_SECS: u32 = 300;
    const IS_LONG: bool = true;

    /// Safe to repeat: a page's records are named by the provider's ids, and its place is in the same commit; what was fetched and not
    /// committed is fetched again.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let tenant_id = lease.tenant_id()?;
        let mut conn = env.db.acquire().await?;
        let source = sources::load(&mut conn, tenant_id, self.source_id).await?;
        let job = jobs::get(&mut conn, tenant_id, self.job_id).await?;
        let places = mail::settings::places(&mut conn, tenant_id, self.source_id).await?;
        drop(conn);
        let (Some(source), Some(job)) = (source, job) else { return Ok(Outcome::Cancel("its source is gone")) };
        if job.status.is_over() {
            return Ok(Outcome::Cancel("the job is over"));
        }
        let transport = source.transport;
        let provider = match env.providers.named(&source.provider) {
            Ok(provider) => provider,
            Err(unknown) => return self.refuse(env, lease, &format!("its provider is unknown: {unknown}")).await,
        };
        let Some(connector) = env.providers.connector(provider, transport) else {
            return self.refuse(env, lease, "nothing here reads it the way it was connected").await;
        };
        let reader = Reader {
            env: env.clone(),
            tenant_id,
            source_id: self.source_id,
            provider,
            transport,
            account: source.account.clone().unwrap_or_default(),
            connector,
            places,
        };
        let run = Run { env, lease, tenant_id, source_id: self.source_id, job_id: self.job_id, reader, source, job };
        match run.go().await {
            Ok(outcome) => Ok(outcome),
            Err(trouble) => run.settle(trouble).await,
        }
    }
}

impl Ingest {
    /// The job says why before its message is given up.
    async fn refuse(&self, env: &Env, lease: &Lease, what: &str) -> Result<Outcome, Fault> {
        let mut effect = lease.begin_note(env).await?;
        jobs::trouble(&mut effect, env.clock.sql(), lease.tenant_id()?, self.job_id, "ours", what, true).await?;
        effect.commit().await?;
        Err(Fault::Refused { what: what.into() })
    }
}

/// The reasons why a run stops before its job is over.
enum Trouble {
    /// The provider's error, and the token it was asked with.
    Pull(PullError, Token),
    Token(NoToken),
    /// The provider lost our place once more than [`MOST_RESTARTS`].
    WornOut(&'static str),
    Ours(Fault),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::Ours(fault)
    }
}

impl From<store::Error> for Trouble {
    fn from(error: store::Error) -> Self {
        Self::Ours(error.into())
    }
}

/// One claim of a job.
struct Run<'a> {
    env: &'a Env,
    lease: &'a Lease,
    tenant_id: TenantId,
    source_id: SourceId,
    job_id: JobId,
    reader: Reader,
    source: Source,
    job: Job,
}

impl Run<'_> {
    async fn go(&self) -> Result<Outcome, Trouble> {
        if let Some(stopped) = self.stopped().await? {
            return Ok(stopped);
        }
        let mut checkpoint: Checkpoint = serde_json::from_value(self.job.checkpoint_data.clone())
            .map_err(|error| Fault::Malformed { what: format!("the checkpoint of job {}: {error}", self.job_id) })?;
        let mut effect = self.lease.begin_note(self.env).await?;
        let step = format!("asks {}", self.reader.provider.label);
        let is_begun = jobs::begin(&mut effect, self.env.clock.sql(), self.tenant_id, self.job_id, &step).await?;
        if is_begun && self.is_mailbox() && checkpoint.items.is_empty() {
            let since = self.job.started_at.filter(|_| checkpoint.phase != Phase::Begin);
            pending::claim(self.env, &mut effect, self.whose(), since, self.lease.attempt()).await?;
        }
        effect.commit().await?;
        if !is_begun {
            return Ok(Outcome::Cancel("the job is over"));
        }
        let mut kind = self.job.kind;
        let until = Instant::now() + TURN;
        loop {
            let is_going = match checkpoint.phase {
                Phase::Begin => self.prepare(&mut kind, &mut checkpoint).await?,
                Phase::Pull if !checkpoint.items.is_empty() => self.pull_items(kind, &mut checkpoint).await?,
                Phase::Pull => self.pull(&mut kind, &mut checkpoint, until).await?,
                Phase::Reconcile => self.reconcile(kind, &mut checkpoint).await?,
                Phase::Finish => return self.finish(kind, &checkpoint).await,
            };
            if !is_going {
                return self.interrupted().await;
            }
            if Instant::now() > until {
                return Ok(Outcome::Snooze(Duration::ZERO, "made room for other sources"));
            }
        }
    }

    /// Whether the provider of the source tells of changes.
    fn is_mailbox(&self) -> bool {
        self.reader.provider.mailbox.is_some()
    }

    fn whose(&self) -> (TenantId, SourceId) {
        (self.tenant_id, self.source_id)
    }

    /// Whether a person paused it, or somebody keeps us away from the provider.
    async fn stopped(&self) -> Result<Option<Outcome>, Trouble> {
        match self.source.status {
            SourceStatus::Paused => return self.pause().await.map(Some),
            SourceStatus::Disconnected => return Ok(Some(Outcome::Cancel("the source is disconnected"))),
            SourceStatus::TokenRefreshFailed => return Err(Trouble::Token(NoToken::Reconnect)),
            _ => {}
        }
        let mut conn = self.env.db.acquire().await?;
        if self.job.kind == JobKind::Push {
            let (at, (tenant_id, source_id)) = (self.env.clock.sql(), self.whose());
            if let Some(wait) = store::mail::pending::left_alone(&mut conn, at, tenant_id, source_id).await? {
                return Ok(Some(Outcome::Snooze(wait, "what is told meanwhile is read with it")));
            }
        }
        let [breaker, account] = self.gates();
        let closed = gates::closed(&mut conn, self.env.clock.sql(), &[&breaker, &account]).await?;
        Ok(closed.first().map(|closed| {
            let wait = Duration::try_from_secs_f64(closed.secs).unwrap_or_default().max(Duration::from_secs(1));
            Outcome::Snooze(wait, "its provider is left alone for a while")
        }))
    }

    fn gates(&self) -> [String; 2] {
        crate::pull::gates(self.tenant_id, self.reader.provider, self.source_id)
    }

    fn breaker(&self) -> String {
        let [breaker, _] = self.gates();
        breaker
    }

    /// A delta needs a place to start from; a full pass takes the next delta's before it reads anything.
    async fn prepare(&self, kind: &mut JobKind, checkpoint: &mut Checkpoint) -> Result<bool, Trouble> {
        if checkpoint.items.is_empty() {
            let cursor = self.source.cursors.clone().filter(|_| matches!(*kind, JobKind::Delta | JobKind::Push));
            checkpoint.cursor = match cursor {
                Some(cursor) => Some(cursor),
                None => {
                    *kind = JobKind::Full;
                    self.reader.cursor().await?
                }
            };
        }
        checkpoint.began_at = Some(self.env.clock.now());
        checkpoint.is_first = self.source.last_successful_sync_at.is_none();
        checkpoint.phase = Phase::Pull;
        Ok(true)
    }

    /// Pages until there are no more, or it is others' turn, or something is wrong. What came before a trouble is written first.
    async fn pull(&self, kind: &mut JobKind, checkpoint: &mut Checkpoint, until: Instant) -> Result<bool, Trouble> {
        let mut pages = self.reader.pages(*kind, checkpoint);
        let mut is_proved = false;
        while let Some((fetched, trouble)) = pages.next(MOST_ITEMS).await {
            if let Some(last) = fetched.last() {
                crash::at(Point::PullFetched)?;
                if !is_proved {
                    self.proved().await?;
                    is_proved = true;
                }
                let after = checkpoint.after_page(*kind, last);
                if !self.commit(*kind, &after, fetched, Vec::new()).await? {
                    return Ok(false);
                }
                *checkpoint = after;
            }
            match trouble {
                Some(Trouble::Pull(PullError::CursorLost(why), _)) => {
                    return self.start_over(kind, checkpoint, why).await;
                }
                Some(trouble) => return Err(trouble),
                None if checkpoint.phase != Phase::Pull || Instant::now() > until => break,
                None => {}
            }
        }
        Ok(true)
    }

    /// The provider answers: nobody has to be kept away from it.
    async fn proved(&self) -> Result<(), Trouble> {
        let [breaker, account] = self.gates();
        let mut conn = self.env.db.acquire().await?;
        Ok(gates::worked(&mut conn, &[&breaker, &account]).await?)
    }

    /// Just the records that somebody asked for, a few at a time.
    async fn pull_items(&self, kind: JobKind, checkpoint: &mut Checkpoint) -> Result<bool, Trouble> {
        let n_now = checkpoint.items.len().min(self.reader.connector.find_max());
        let (now, later) = checkpoint.items.split_at(n_now);
        let (items, failed, gone) = self.reader.find(now).await?;
        self.proved().await?;
        let after = match later {
            [] => Checkpoint { phase: Phase::Finish, ..checkpoint.clone() },
            later => Checkpoint { items: later.to_vec(), ..checkpoint.clone() },
        };
        let page = last(items, failed, Value::Null);
        let is_going = self.commit(kind, &after, vec![page], gone).await?;
        *checkpoint = after;
        Ok(is_going)
    }

    /// Documents that the pass did not meet are asked for by name: what is found is remembered, the rest is gone.
    async fn reconcile(&self, kind: JobKind, checkpoint: &mut Checkpoint) -> Result<bool, Trouble> {
        let mut conn = self.env.db.acquire().await?;
        let (types, after) = (self.reader.connector.document_types(), checkpoint.after.as_str());
        let most = i64::try_from(self.reader.connector.find_max()).unwrap_or(1);
        let (tenant_id, source_id, job_id) = (self.tenant_id, self.source_id, self.job_id);
        let unseen = match &self.reader.provider.mailbox {
            // Files go with their letters, and letters without a document are letters, too.
            Some(mailbox) => {
                let of_job = (source_id, job_id);
                letters::unseen(&mut conn, tenant_id, of_job, mailbox.message_type, after, most).await?
            }
            None => jobs::unseen(&mut conn, tenant_id, source_id, job_id, types, after, most).await?,
        };
        drop(conn);
        let Some(last) = unseen.last() else {
            checkpoint.phase = Phase::Finish;
            return Ok(true);
        };
        let after = Checkpoint { after: last.clone(), ..checkpoint.clone() };
        let (items, failed, gone) = self.reader.find(&unseen).await?;
        self.proved().await?;
        let page = more(items, failed, Value::Null);
        let is_going = self.commit(kind, &after, vec![page], gone).await?;
        *checkpoint = after;
        Ok(is_going)
    }

    /// The provider no longer knows our place. When it is given up the job begins anew, too, or it would ask for the same place for ever.
    async fn start_over(
        &self,
        kind: &mut JobKind,
        checkpoint: &mut Checkpoint,
        why: &'static str,
    ) -> Result<bool, Trouble> {
        let is_worn_out = checkpoint.restarts == MOST_RESTARTS;
        let restarts = if is_worn_out { 0 } else { checkpoint.restarts + 1 };
        *kind = JobKind::Full;
        *checkpoint = Checkpoint { restarts, ..Checkpoint::default() };
        let (at, tenant_id, job_id) = (self.env.clock.sql(), self.tenant_id, self.job_id);
        // What was met before may be gone by now. It goes in bites, before the place does: after a crash in between, the provider refuses the place again.
        loop {
            let mut effect = self.lease.begin_step(self.env).await?;
            let gone = jobs::forget_seen(&mut effect, tenant_id, job_id, MOST_FORGOTTEN).await?;
            effect.commit().await?;
            if gone == 0 {
                break;
            }
        }
        let mut effect = self.lease.begin_step(self.env).await?;
        let (step, note) = (self.step(*kind, checkpoint), format!("{why}: everything is read again"));
        let (place, none) = (checkpoint.stored()?, Progress::default());
        let is_running =
            jobs::advance(&mut effect, at, tenant_id, job_id, *kind, &place, &step, Some(&note), &none).await?;
        sources::tell(&mut effect, at, tenant_id, self.source_id, Some(job_id), Tone::Info, &note).await?;
        effect.commit().await?;
        if is_worn_out && is_running {
            return Err(Trouble::WornOut(why));
        }
        Ok(is_running)
    }

    /// The next step, in words.
    fn step(&self, kind: JobKind, after: &Checkpoint) -> String {
        let who = self.reader.provider.label;
        match (after.phase, kind) {
            (Phase::Reconcile, _) => format!("looks for what {who} no longer has"),
            (Phase::Finish, _) => "comes to its end".into(),
            (_, JobKind::Full) => format!("reads everything that {who} has"),
            _ => format!("reads what changed at {who}"),
        }
    }

    /// A person stopped the job or paused its source while a page was being read.
    async fn interrupted(&self) -> Result<Outcome, Trouble> {
        let mut conn = self.env.db.acquire().await?;
        let job = jobs::get(&mut conn, self.tenant_id, self.job_id).await?;
        drop(conn);
        match job.map(|job| job.status) {
            Some(JobStatus::Running | JobStatus::Pending) => self.pause().await,
            _ => Ok(Outcome::Cancel("the job was stopped")),
        }
    }

    /// A paused job has no message: it is sent again when somebody resumes it. Who resumes it at this moment finds it paused, or we find
    /// the source active.
    async fn pause(&self) -> Result<Outcome, Trouble> {
        let mut effect = self.lease.begin(self.env).await?;
        match sources::locked_status(&mut effect, self.tenant_id, self.source_id).await? {
            Some(SourceStatus::Paused) => {}
            None | Some(SourceStatus::Disconnected) => return Ok(Outcome::Cancel("the source is disconnected")),
            Some(_) => return Ok(Outcome::Snooze(Duration::from_secs(1), "its source is active again")),
        }
        jobs::pause(&mut effect, self.env.clock.sql(), self.tenant_id, self.job_id, "its source is paused").await?;
        Ok(effect.commit().await?)
    }

    /// The last commit: the cursor, the job's end, the next sync, the message that derives clients, and the end of its own message.
    async fn finish(&self, kind: JobKind, checkpoint: &Checkpoint) -> Result<Outcome, Trouble> {
        let mut effect = self.lease.begin(self.env).await?;
        let (at, now, tenant_id, source_id) =
            (self.env.clock.sql(), self.env.clock.now(), self.tenant_id, self.source_id);
        if checkpoint.items.is_empty() {
            sources::finish_pass(&mut effect, at, tenant_id, source_id, checkpoint.cursor.as_ref()).await?;
            // As it is by now: its subscription may have been made or lost while we were reading. Its row is locked.
            let source = sources::load(&mut effect, tenant_id, source_id).await?;
            let source = source.as_ref().unwrap_or(&self.source);
            // A mailbox that is told of is looked at again when it has been silent for a while.
            let is_heard = subscriptions::is_heard(source, now);
            if is_heard || source.next_sync_at.is_none_or(|next| next <= now) {
                let mut next = next_sync(now, subscriptions::sync_every_secs(self.env, source), source_id);
                if self.job.kind == JobKind::Push && jobs::is_empty(&mut effect, tenant_id, self.job_id).await? {
                    next = next.min(now + LAG); // what was told of is not in the provider's list yet
                }
                sources::set_next_sync(&mut effect, tenant_id, source_id, Some(next)).await?;
            }
            if kind == JobKind::Full && self.reader.provider.mailbox.is_some() {
                check::after_full(self.env, &mut effect, tenant_id, source_id, checkpoint.read_from).await?;
            }
        }
        jobs::end(&mut effect, at, tenant_id, self.job_id, JobStatus::Completed, None).await?;
        failures::clear(&mut effect, tenant_id, source_id, &[UNREADABLE]).await?;
        if self.is_mailbox() {
            if checkpoint.items.is_empty() {
                pending::finish(self.env, &mut effect, self.whose()).await?;
            }
        } else {
            queue_of::<ClientFactsOf>().send(&mut effect, tenant_id, &[ClientFactsOf { source_id }]).await?;
        }
        if self.job.error_details.as_array().is_some_and(|troubles| !troubles.is_empty()) {
            let what = "Recovered: the sync went on where it had stopped, and came to its end";
            sources::tell(&mut effect, at, tenant_id, source_id, Some(self.job_id), Tone::Good, what).await?;
        }
        effect.notify(sources::changed(tenant_id, source_id));
        crash::at(Point::PullEnded)?;
        Ok(effect.commit().await?)
    }
}

impl Checkpoint {
    /// The progress of a job once this page, the last of those that were fetched, is written.
    fn after_page(&self, kind: JobKind, last: &Page) -> Self {
        let here = self.clone();
        match (last.more, kind) {
            (true, _) => Self { place: Some(last.next.clone()), ..here },
            (false, JobKind::Full) => {
                // A provider that tells its changes only from the end of a pass names the cursor there.
                let cursor = Some(last.next.clone()).filter(|next| !next.is_null()).or(here.cursor.clone());
                Self { place: None, phase: Phase::Reconcile, cursor, read_from: self.reach(last), ..here }
            }
            (false, _) => Self { place: None, phase: Phase::Finish, cursor: Some(last.next.clone()), ..here },
        }
    }

    /// From when on a full pass has read every letter. A pass that was capped has at least not missed what came in since it began.
    fn reach(&self, last: &Page) -> Option<DateTime<Utc>> {
        match last.reach {
            Reach::All => None,
            Reach::From(from) => Some(from),
            Reach::Part => self.began_at,
        }
    }

    fn stored(&self) -> Result<Value, Fault> {
        serde_json::to_value(self).map_err(|error| Fault::Transient(error.into()))
    }
}
