//! Notices that wait to be written. What waits is one group: it is looked up, checked and noted in one transaction, whose cost hardly depends on how many
//! there are. None ever waits for a group to fill.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use connectors::pull::mailbox::{Notice, Of, Tells};
use domain::{SourceId, TenantId};
use store::crash::{self, Point};
use store::mail::pending::Mailbox;
use store::mail::subscriptions::{self, Named};
use store::{Tx, sources};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::{Refused, is_same};
use crate::Env;
use crate::mail::pending;
use crate::pull::Provider;

/// Notices that wait at once.
const MOST_WAITING: usize = 20_000;
/// Those of one group, if no post has more.
const MOST_IN_GROUP: usize = 1_000;
/// A group takes milliseconds. After this long its session is given up.
const GROUP_LIMIT: Duration = Duration::from_secs(5);
/// How long a post waits for a database that is away.
const HOLD: Duration = Duration::from_secs(8);
/// Between tries while the database is away.
const PAUSE: Duration = Duration::from_millis(50);

/// The posts that wait.
#[derive(Default)]
pub(super) struct Line {
    waiting: Mutex<Vec<Waiting>>,
    arrived: Notify,
    /// Held while syncs of a flood are begun.
    starting: Arc<tokio::sync::Mutex<()>>,
}

struct Waiting {
    provider: Provider,
    notices: Vec<Notice>,
    until: Instant,
    answer: oneshot::Sender<Result<(), Refused>>,
}

impl Line {
    /// Joins the line; returns when what the notices say is durable.
    pub async fn wait(&self, provider: Provider, notices: Vec<Notice>) -> Result<(), Refused> {
        let (answer, answered) = oneshot::channel();
        let until = Instant::now() + HOLD;
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let n: usize = waiting.iter().map(|one| one.notices.len()).sum();
            if n + notices.len() > MOST_WAITING {
                return Err(Refused::Full);
            }
            waiting.push(Waiting { provider, notices, until, answer });
        }
        self.arrived.notify_one();
        answered.await.unwrap_or_else(|_| Err(Refused::Away(anyhow::anyhow!("what writes notices has ended"))))
    }

    /// Takes the next group. Waits for the first post.
    async fn take(&self) -> Vec<Waiting> {
        loop {
            {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                let mut n = 0;
                let fits = |one: &&Waiting| {
                    n += one.notices.len();
                    n <= MOST_IN_GROUP
                };
                let n_posts = waiting.iter().take_while(fits).count().max(1).min(waiting.len());
                let group: Vec<Waiting> = waiting.drain(..n_posts).collect();
                if !group.is_empty() {
                    return group;
                }
            }
            self.arrived.notified().await;
        }
    }
}

/// Writes groups until dropped.
pub(super) async fn run(env: &Env, line: &Line) {
    // Sessions of its own: what waits for the pool must not keep providers waiting.
    let env = Env { db: env.db.sibling(2), ..env.clone() };
    loop {
        let group = line.take().await;
        settle(&env, &line.starting, group).await;
    }
}

/// Writes a group and answers its posts. A group that the database refuses is tried post by post.
async fn settle(env: &Env, starting: &Arc<tokio::sync::Mutex<()>>, mut group: Vec<Waiting>) {
    loop {
        match store::within(GROUP_LIMIT, write(env, &group)).await {
            Ok(written) => {
                let _ = crash::at(Point::MailBeforeAnswer);
                for (waiting, answer) in group.into_iter().zip(written.answers) {
                    let _ = waiting.answer.send(answer); // a provider that left meanwhile tells again
                }
                if !written.is_started {
                    tokio::spawn(start_rest(env.clone(), starting.clone()));
                }
                return;
            }
            Err(error) if error.is_passing() => {
                tracing::debug!(error = ?error, "{} posts of providers are not written yet", group.len());
                tokio::time::sleep(PAUSE).await;
                let (late, rest): (Vec<_>, Vec<_>) = group
                    .into_iter()
                    .filter(|waiting| !waiting.answer.is_closed())
                    .partition(|waiting| waiting.until <= Instant::now());
                for waiting in late {
                    let _ = waiting.answer.send(Err(Refused::Away(anyhow::anyhow!("the database is away"))));
                }
                group = rest;
                if group.is_empty() {
                    return;
                }
            }
            Err(error) if group.len() == 1 => {
                tracing::error!(error = ?error, "what a provider posted could not be written");
                for waiting in group {
                    let _ = waiting.answer.send(Err(Refused::Away(anyhow::anyhow!("it could not be written"))));
                }
                return;
            }
            Err(error) => {
                tracing::warn!(error = ?error, "{} posts were refused together; each is tried alone", group.len());
                for waiting in group {
                    Box::pin(settle(env, starting, vec![waiting])).await;
                }
                return;
            }
        }
    }
}

/// Starts the syncs of a flood, while further posts are answered. What goes wrong here is made good by the task that looks for them.
async fn start_rest(env: Env, starting: Arc<tokio::sync::Mutex<()>>) {
    let _one_at_a_time = starting.lock().await;
    if let Err(fault) = pending::keep(&env).await {
        tracing::debug!("the syncs of a flood of notices wait for the next look: {}", fault.in_words());
    }
}

struct Written {
    /// In the order of the posts.
    answers: Vec<Result<(), Refused>>,
    /// Every mailbox that was heard of has its sync.
    is_started: bool,
}

/// The effects of a group's good notices.
#[derive(Default)]
struct Effects {
    heard: BTreeSet<Mailbox>,
    /// Subscriptions that are to be renewed.
    renewed: BTreeSet<Mailbox>,
    /// Subscriptions that are gone.
    lost: BTreeMap<Mailbox, String>,
}

async fn write(env: &Env, group: &[Waiting]) -> store::Result<Written> {
    let mut tx = env.db.begin().await?;
    let known = find(&mut tx, group).await?;
    let mut effects = Effects::default();
    let answers = group.iter().map(|waiting| check(waiting, &known, &mut effects)).collect();
    let at = env.clock.sql();
    // Sources before what was heard of them, as in a sync's last commit.
    for (mailbox @ (tenant_id, id), name) in &effects.lost {
        if subscriptions::lose(&mut tx, at, *tenant_id, *id, Some(name)).await? {
            tx.notify(sources::changed(*tenant_id, *id));
            effects.heard.insert(*mailbox); // nobody tells of what changes until there is another one
        }
    }
    for (tenant_id, id) in &effects.renewed {
        subscriptions::set_due(&mut tx, *tenant_id, *id, None).await?;
    }
    let heard: Vec<Mailbox> = effects.heard.into_iter().collect();
    let is_started = pending::hear(env, &mut tx, &heard).await?;
    if heard.is_empty() && effects.renewed.is_empty() && effects.lost.is_empty() {
        tx.rollback().await?;
        return Ok(Written { answers, is_started });
    }
    crash::at(Point::MailHeard)?;
    tx.commit().await?;
    Ok(Written { answers, is_started })
}

type Known = HashMap<(&'static str, String), Vec<Named>>;

/// The mailboxes that a group names, by provider and name. A subscription and an account have no name in common.
async fn find(tx: &mut Tx, group: &[Waiting]) -> store::Result<Known> {
    let mut known = Known::new();
    let providers: BTreeSet<&'static str> = group.iter().map(|waiting| waiting.provider.name).collect();
    for provider in providers {
        let (mut ids, mut accounts) = (BTreeSet::new(), BTreeSet::new());
        let posts = group.iter().filter(|waiting| waiting.provider.name == provider);
        for notice in posts.flat_map(|waiting| &waiting.notices) {
            match &notice.of {
                Of::Subscription(id) => ids.insert(id.as_str()),
                Of::Account(account) => accounts.insert(account.as_str()),
            };
        }
        let mut named = Vec::new();
        if !ids.is_empty() {
            named.extend(subscriptions::of_subscriptions(tx, provider, &Vec::from_iter(ids)).await?);
        }
        if !accounts.is_empty() {
            named.extend(subscriptions::of_accounts(tx, provider, &Vec::from_iter(accounts)).await?);
        }
        for one in named {
            known.entry((provider, one.name.clone())).or_default().push(one);
        }
    }
    Ok(known)
}

/// Checks the notices of a post, and adds the effects of the good ones. It is refused only if every secret in it is wrong.
fn check(waiting: &Waiting, known: &Known, effects: &mut Effects) -> Result<(), Refused> {
    let provider = waiting.provider.name;
    let mut n_wrong = 0;
    for notice in &waiting.notices {
        let (name, wants_secret) = match &notice.of {
            Of::Subscription(id) => (id, true),
            Of::Account(account) => (account, false),
        };
        let named = known.get(&(provider, name.clone())).map_or(&[][..], Vec::as_slice);
        let is_good = |one: &Named| {
            let shown = notice.client_state.as_ref().map(|shown| shown.reveal().as_bytes()).unwrap_or_default();
            !wants_secret || one.client_state().is_some_and(|wanted| is_same(shown, &wanted))
        };
        let outcome = if named.is_empty() {
            "unknown"
        } else if !named.iter().all(is_good) {
            n_wrong += 1;
            "wrong_secret"
        } else {
            named.iter().for_each(|one| effects.add(one, notice));
            "taken"
        };
        metrics::counter!("tributary_mail_notices_total", "provider" => provider, "outcome" => outcome).increment(1);
    }
    if n_wrong == waiting.notices.len() { Err(Refused::Unproved("client_state")) } else { Ok(()) }
}

impl Effects {
    fn add(&mut self, one: &Named, notice: &Notice) {
        let mailbox: (TenantId, SourceId) = one.mailbox();
        match notice.tells {
            Tells::Changed | Tells::Missed => {
                self.heard.insert(mailbox);
            }
            _ if !one.is_own => {} // it is about another one's subscription
            Tells::Reauthorize => {
                self.renewed.insert(mailbox);
            }
            Tells::Removed => {
                self.lost.insert(mailbox, one.name.clone());
            }
        }
    }
}
