//! Subscriptions, by which providers tell of mailboxes' changes: made soon after a mailbox is connected, renewed long before they end, made anew when they are
//! lost, and removed when their source is let go. One that was made is followed by a sync: nobody told of what changed before.
//!
//! A row is taken by moving its time ahead, so that no session is held while its provider is asked, and no other process asks too. If a process
//! dies in between, its provider is asked again: it gives the subscription that it has made, or another one, and notices of one that nobody
//! knows are told to nobody.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use connectors::pull::mailbox::{Address, Mailbox, MailboxSpec, Proof, Push, Subscription};
use connectors::pull::{Account, PullError};
use domain::fault::backoff;
use domain::{Fault, Secret, SourceId, SourceStatus, TenantId, Transport};
use futures_util::{StreamExt as _, stream};
use rand::RngExt as _;
use store::crash::{self, Point};
use store::mail::subscriptions::{self, Due};
use store::sources::{self, Source, Tone};

use super::pending;
use crate::Env;
use crate::pull::tokens::{self, NoToken, Token};
use crate::pull::{Paced, Provider};

/// Mailboxes that one transaction takes, and that are asked about at once.
const BITE: i64 = 8;
/// Nobody else looks after a mailbox for so long. Longer than a provider is waited for.
const LEASE: Duration = Duration::from_secs(300);
/// A subscription is renewed at least this often, if it would last for longer.
const RENEWED_EVERY: TimeDelta = TimeDelta::hours(24);
/// The time that a person waits for a provider to remove a subscription before the source is let go all the same.
const GOODBYE: Duration = Duration::from_secs(5);
/// The most subscriptions of a tenant that are removed before it is forgotten. Others end by themselves.
const MOST_GOODBYES: i64 = 100;

/// Whether the provider of a mailbox can tell us of its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// It posts to this address.
    Told { url: String },
    /// It cannot, until this setting has a value.
    Missing(&'static str),
}

/// The way in which a provider of mailboxes tells us of changes, by the settings.
pub fn way(env: &Env, spec: &MailboxSpec) -> Way {
    let (settings, base) = (&env.config.providers, env.config.hook_base());
    let url = |base: &str| Way::Told { url: format!("{base}/webhooks/{}", spec.hook) };
    match &spec.push {
        Push::Subscription => base.map_or(Way::Missing("PUBLIC_URL"), url),
        Push::Topic(topic) if settings.get(topic.topic).is_none_or(str::is_empty) => Way::Missing(topic.topic.env),
        Push::Topic(topic) => match topic.proof(&env.http, settings) {
            Proof::Closed(_) => Way::Missing(topic.token.env),
            // The topic's own subscription has the address: it is not ours to know.
            _ => url(base.unwrap_or_default()),
        },
    }
}

/// Whether the provider of a source tells of its changes now.
pub fn is_heard(source: &Source, now: DateTime<Utc>) -> bool {
    source.subscription_expires_at.is_some_and(|until| until > now)
}

/// The interval between two syncs that nobody asks for. A mailbox that is told of is looked at now and then: a notice is a hint, and some are lost.
pub fn sync_every_secs(env: &Env, source: &Source) -> f64 {
    if is_heard(source, env.clock.now()) { env.config.mailbox_safety_secs as f64 } else { source.sync_every_secs }
}

/// The names of all providers of mailboxes: those that can tell us of changes, and the others.
fn providers(env: &Env) -> (Vec<&'static str>, Vec<&'static str>) {
    let mailboxes = env.providers.all().iter().filter_map(|provider| Some((*provider, provider.mailbox.as_ref()?)));
    let (told, others): (Vec<_>, Vec<_>) = mailboxes.partition(|(provider, spec)| {
        env.providers.mailbox(provider).is_some() && matches!(way(env, spec), Way::Told { .. })
    });
    let names = |list: Vec<(Provider, _)>| list.into_iter().map(|(provider, _)| provider.name).collect();
    (names(told), names(others))
}

/// Looks after all subscriptions that are due.
pub async fn keep(env: &Env) -> Result<(), Fault> {
    let (told, others) = providers(env);
    let mut conn = env.db.acquire().await?;
    if !others.is_empty() {
        subscriptions::unmark(&mut conn, env.clock.sql(), &others).await?;
    }
    drop(conn);
    if told.is_empty() {
        return Ok(());
    }
    loop {
        let taken = take(env, &told).await?;
        let n = taken.len();
        let mut looked_after = stream::iter(taken).map(|due| look_after(env, due)).buffer_unordered(BITE as usize);
        let mut failed = None;
        while let Some(done) = looked_after.next().await {
            failed = failed.or(done.err());
        }
        if let Some(fault) = failed {
            return Err(fault);
        }
        if n < BITE as usize {
            break;
        }
    }
    mark_lapsed(env, &told).await
}

/// Says of mailboxes that they should be told of and are not.
async fn mark_lapsed(env: &Env, told: &[&str]) -> Result<(), Fault> {
    let mut tx = env.db.begin().await?;
    let at = env.clock.sql();
    let lapsed = subscriptions::mark_lapsed(&mut tx, at, told).await?;
    for (tenant_id, source_id) in &lapsed {
        let what = "Its provider no longer tells of changes: it is asked for them until it does";
        sources::tell(&mut tx, at, *tenant_id, *source_id, None, Tone::Trouble, what).await?;
    }
    Ok(tx.commit().await?)
}

/// A mailbox that this process looks after.
struct Taken {
    due: Due,
    client_state: Secret,
}

/// Takes mailboxes that are due. Each has its secret when this is committed, before its provider is asked: the provider may post before it answers.
async fn take(env: &Env, told: &[&str]) -> Result<Vec<Taken>, Fault> {
    let mut tx = env.db.begin().await?;
    let mut taken = Vec::new();
    for due in subscriptions::take_due(&mut tx, env.clock.sql(), told, BITE, LEASE).await? {
        let client_state = match due.client_state() {
            Some(client_state) => Some(client_state),
            None => {
                let new = Secret::new(URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 32]>()));
                subscriptions::keep_client_state(&mut tx, TenantId(due.tenant_id), SourceId(due.id), &new).await?
            }
        };
        taken.extend(client_state.map(|client_state| Taken { due, client_state }));
    }
    tx.commit().await?;
    if !taken.is_empty() {
        crash::at(Point::MailSubscribing)?;
    }
    Ok(taken)
}

/// The outcome of asking a provider.
enum Told {
    /// It tells of changes until then. `is_new`: nobody told of what changed before.
    Until(Subscription, bool),
    No(PullError, Token),
    NoToken(NoToken),
}

async fn look_after(env: &Env, taken: Taken) -> Result<(), Fault> {
    let (tenant_id, id) = (TenantId(taken.due.tenant_id), SourceId(taken.due.id));
    let provider = env.providers.named(&taken.due.provider).ok();
    let known =
        provider.and_then(|provider| Some((provider, provider.mailbox.as_ref()?, env.providers.mailbox(provider)?)));
    let Some((provider, spec, mailbox)) = known else { return Ok(()) };
    let Way::Told { url } = way(env, spec) else { return Ok(()) };
    let told = ask(env, provider, &*mailbox, &url, &taken).await;
    if let Told::Until(subscription, is_new) = told {
        crash::at(Point::MailSubscribed)?;
        return stored(env, provider, &*mailbox, &taken.due, subscription, is_new).await;
    }
    let (code, wait) = match told {
        Told::NoToken(NoToken::Reconnect) => return Ok(()), // it is no longer synced
        Told::NoToken(NoToken::Wait(wait, why)) => {
            // No try: the provider was not asked.
            let mut conn = env.db.acquire().await?;
            tracing::debug!(source.id = %id, "the subscription of source {id} waits: {why}");
            return Ok(subscriptions::set_due(&mut conn, tenant_id, id, Some(after(env, wait))).await?);
        }
        Told::No(PullError::Unauthorized { .. }, token) => {
            if tokens::refused(env, tenant_id, id, &token).await.is_ok() {
                let mut conn = env.db.acquire().await?;
                subscriptions::set_due(&mut conn, tenant_id, id, None).await?; // with a fresh token
            }
            return Ok(()); // or the source says why
        }
        Told::No(PullError::RateLimited { retry_after, .. }, _) => ("rate_limited".to_owned(), retry_after),
        Told::No(PullError::Forbidden { code, .. }, _) => (format!("forbidden: {code}"), Duration::from_secs(3_600)),
        Told::No(PullError::Ours(_), _) => ("ours".to_owned(), Duration::from_secs(60)),
        Told::No(..) | Told::NoToken(NoToken::Failed(_)) | Told::Until(..) => {
            ("unreachable".to_owned(), backoff(taken.due.failures + 7, &mut rand::rng()))
        }
    };
    let wait = wait.clamp(Duration::from_secs(1), Duration::from_secs(3_600));
    tracing::warn!(source.id = %id, "{provider} does not tell of changes of source {id} ({code}); it is asked again in {} s", wait.as_secs());
    let mut conn = env.db.acquire().await?;
    Ok(subscriptions::fail(&mut conn, tenant_id, id, &code, after(env, wait)).await?)
}

fn after(env: &Env, wait: Duration) -> DateTime<Utc> {
    env.clock.now() + TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(1))
}

/// Renews the subscription, or asks for one where there is none, or none any more.
async fn ask(env: &Env, provider: Provider, mailbox: &dyn Mailbox, url: &str, taken: &Taken) -> Told {
    let (tenant_id, id) = (TenantId(taken.due.tenant_id), SourceId(taken.due.id));
    let token = match tokens::token(env, tenant_id, id, provider).await {
        Ok(token) => token,
        Err(no_token) => return Told::NoToken(no_token),
    };
    let pace = Paced::new(&env.db, provider, id, env.config.pull_rate_factor);
    let account = Account { token: &token.access, account: &taken.due.account, pace: &pace, places: &[] };
    if let Some(expires_at) = taken.due.subscription_expires_at {
        let known = Subscription { id: taken.due.provider_subscription_id.clone(), expires_at };
        match mailbox.renew(&account, &known).await {
            Ok(Some(renewed)) => return Told::Until(renewed, expires_at <= env.clock.now()),
            Ok(None) => {}
            Err(error) => return Told::No(error, token.clone()),
        }
    }
    let address = Address { url, client_state: &taken.client_state };
    match mailbox.subscribe(&account, &address).await {
        Ok(made) => Told::Until(made, true),
        Err(error) => Told::No(error, token.clone()),
    }
}

/// Stores what a provider has promised. A source that was let go meanwhile is none of its business any more.
async fn stored(
    env: &Env,
    provider: Provider,
    mailbox: &dyn Mailbox,
    due: &Due,
    subscription: Subscription,
    is_new: bool,
) -> Result<(), Fault> {
    let (tenant_id, id, at) = (TenantId(due.tenant_id), SourceId(due.id), env.clock.sql());
    let (until, now) = (subscription.expires_at, env.clock.now());
    let next = renewal(now, until, rand::rng().random_range(0.8..1.0));
    let mut tx = env.db.begin().await?;
    let name = subscription.id.as_deref();
    if !subscriptions::store(&mut tx, at, tenant_id, id, name, until, next).await? {
        drop(tx);
        goodbye(env, provider, mailbox, tenant_id, id, &due.account, &subscription).await;
        return Ok(());
    }
    if is_new {
        let what = format!("{} tells of changes from now on", provider.label);
        sources::tell(&mut tx, at, tenant_id, id, None, Tone::Good, &what).await?;
        pending::hear(env, &mut tx, &[(tenant_id, id)]).await?;
    }
    tx.notify(sources::changed(tenant_id, id));
    crash::at(Point::MailSubscriptionWritten)?;
    Ok(tx.commit().await?)
}

/// The time of the next renewal: after a day, or half of its life if that is shorter, and at most a fifth sooner, so that not all are renewed together.
fn renewal(now: DateTime<Utc>, until: DateTime<Utc>, share: f64) -> DateTime<Utc> {
    let longest = ((until - now) / 2).min(RENEWED_EVERY).max(TimeDelta::seconds(30));
    now + TimeDelta::milliseconds((longest.num_milliseconds() as f64 * share) as i64)
}

/// Has the provider of a source that is about to be let go tell no more. It has a few seconds; what it does not remove ends by itself, and
/// notices of it are told to nobody.
pub async fn remove(env: &Env, tenant_id: TenantId, id: SourceId) -> store::Result<()> {
    let source = env.db.session(async |conn| sources::load(conn, tenant_id, id).await).await?;
    let Some((source, expires_at)) = source.and_then(|source| source.subscription_expires_at.map(|at| (source, at)))
    else {
        return Ok(());
    };
    let provider = env.providers.named(&source.provider).ok().filter(|_| source.transport == Transport::Rest);
    let mailbox = provider.and_then(|provider| Some((provider, env.providers.mailbox(provider)?)));
    let has_token = !matches!(source.status, SourceStatus::TokenRefreshFailed | SourceStatus::Disconnected);
    let Some((provider, mailbox)) = mailbox.filter(|_| has_token) else { return Ok(()) };
    let account = source.account.unwrap_or_default();
    // Another tenant's source of the same account would be told no more either.
    let others =
        env.db.session(async |conn| subscriptions::look_at_others(conn, provider.name, &account, id).await).await?;
    if others == 0 {
        let subscription = Subscription { id: source.provider_subscription_id.clone(), expires_at };
        goodbye(env, provider, &*mailbox, tenant_id, id, &account, &subscription).await;
        crash::at(Point::MailUnsubscribed)?;
    }
    Ok(())
}

/// The same for all sources of a tenant that is about to be forgotten, as far as a few seconds allow.
pub async fn remove_all(env: &Env, tenant_id: TenantId) -> store::Result<()> {
    let ids = env.db.session(async |conn| subscriptions::of_tenant(conn, tenant_id, MOST_GOODBYES).await).await?;
    let mut asked = stream::iter(ids).map(|id| remove(env, tenant_id, id)).buffer_unordered(BITE as usize);
    let all = async {
        while let Some(done) = asked.next().await {
            done?;
        }
        Ok(())
    };
    // What is left ends by itself.
    tokio::time::timeout(GOODBYE, all).await.unwrap_or(Ok(()))
}

async fn goodbye(
    env: &Env,
    provider: Provider,
    mailbox: &dyn Mailbox,
    tenant_id: TenantId,
    id: SourceId,
    account: &str,
    subscription: &Subscription,
) {
    let asked = tokio::time::timeout(GOODBYE, async {
        let token = tokens::token(env, tenant_id, id, provider).await.map_err(|_| "there is no good token")?;
        let pace = Paced::new(&env.db, provider, id, env.config.pull_rate_factor);
        let account = Account { token: &token.access, account, pace: &pace, places: &[] };
        mailbox.unsubscribe(&account, subscription).await.map_err(|_| "the provider did not do it")
    });
    let why = match asked.await {
        Ok(Ok(())) => return,
        Ok(Err(why)) => why,
        Err(_) => "the provider is slow",
    };
    tracing::info!(source.id = %id, "the subscription of source {id} at {provider} was not removed, and ends by itself: {why}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_is_renewed_long_before_it_ends_and_not_all_at_once() {
        let now: DateTime<Utc> = "2026-11-15T12:00:00Z".parse().expect("a time");
        let hours = |life: TimeDelta, share: f64| (renewal(now, now + life, share) - now).num_minutes() as f64 / 60.0;
        assert_eq!(hours(TimeDelta::days(7), 1.0), 24.0);
        assert_eq!(hours(TimeDelta::days(7), 0.8), 19.2);
        assert_eq!(hours(TimeDelta::hours(2), 1.0), 1.0);
        assert_eq!(renewal(now, now - TimeDelta::hours(1), 1.0), now + TimeDelta::seconds(30), "a life that is over");
    }
}
