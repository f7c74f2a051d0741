//! Provides a good token for a source. The token is refreshed exactly once, however many workers need it.
//!
//! The worker that takes the lease asks the provider in a separate task. That task keeps the lease while it waits and stores the reply,
//! however late it comes: providers rotate refresh tokens, so the reply is the only good pair there is. All callers wait for the stored
//! version to change.

use std::time::Duration;

use anyhow::anyhow;
use connectors::pull::oauth::GrantError;
use domain::{Fault, Secret, SourceId, SourceStatus, TenantId};
use rand::RngExt as _;
use store::crash::{self, Point};
use store::sources::{self, Tone};
use store::tokens::{self, Held, Lease, Pair};
use store::{gates, within};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use super::Provider;
use crate::Env;
use crate::work::DB_LIMIT;

/// The time that a refresh is reserved; extended while its reply is awaited.
const LEASE: Duration = Duration::from_secs(45);
/// The time that a worker waits for a token that is being refreshed. For a longer wait its item is put back.
const PATIENCE: Duration = Duration::from_secs(35);
/// A pair that was refused that soon after it was stored will not get better by another refresh.
const FRESH_SECS: f64 = 300.0;
/// The life of a token when its provider does not state one.
pub(super) const ASSUMED_LIFE: Duration = Duration::from_secs(1_800);
/// The time in which no token is requested after our own client was refused.
const OUR_FAULT: Duration = Duration::from_secs(900);
/// A pair in hand is worth many tries to store it.
const STORE_TRIES: u32 = 60;

/// A bearer that is good now.
#[derive(Clone, Debug)]
pub struct Token {
    pub access: Secret,
    pub version: i64,
    /// The time at which it has to be refreshed. None: it does not expire.
    pub good_until: Option<Instant>,
}

impl Token {
    /// Whether it is good for the next request.
    pub fn is_good(&self) -> bool {
        self.good_until.is_none_or(|until| Instant::now() < until)
    }
}

/// The reasons why there is no token now.
#[derive(Debug)]
pub enum NoToken {
    /// A person has to reconnect; the source says so.
    Reconnect,
    /// Not now: try again then. Costs no attempt.
    Wait(Duration, &'static str),
    Failed(Fault),
}

impl From<store::Error> for NoToken {
    fn from(error: store::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// The times of a refresh; tests use shorter ones.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub lease: Duration,
    pub patience: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { lease: LEASE, patience: PATIENCE }
    }
}

/// Returns a good token of the source.
pub async fn token(env: &Env, tenant_id: TenantId, source_id: SourceId, provider: Provider) -> Result<Token, NoToken> {
    token_within(env, tenant_id, source_id, provider, Timing::default()).await
}

pub async fn token_within(
    env: &Env,
    tenant_id: TenantId,
    source_id: SourceId,
    provider: Provider,
    timing: Timing,
) -> Result<Token, NoToken> {
    let began = Instant::now();
    let mut seen = None;
    loop {
        let held = held(env, tenant_id, source_id).await?;
        if held.status == SourceStatus::TokenRefreshFailed {
            return Err(NoToken::Reconnect);
        }
        // A token that was refreshed just now is used however short it lives: another refresh would give no better one.
        let is_new = seen.is_some_and(|seen| held.version > seen);
        if let Some(token) = usable(env, tenant_id, &held, is_new).await? {
            return Ok(token);
        }
        seen = Some(held.version);
        if began.elapsed() > timing.patience {
            return Err(NoToken::Wait(Duration::from_secs(5), "its token is being refreshed"));
        }
        if let Some(wait) = left_alone(env, provider).await? {
            return Err(NoToken::Wait(wait, "its provider refuses our client id or secret"));
        }
        let me = Uuid::now_v7();
        let lease = within(DB_LIMIT, async {
            let mut conn = env.db.acquire().await?;
            tokens::take_lease(&mut conn, tenant_id, source_id, held.version, me, timing.lease).await
        });
        match lease.await? {
            Lease::Taken { is_second } => {
                crash::at(Point::TokenLeased)?;
                let refresh = Refresh {
                    env: env.clone(),
                    tenant_id,
                    source_id,
                    provider,
                    me,
                    held,
                    is_second,
                    lease: timing.lease,
                };
                let (tell, told) = oneshot::channel();
                tokio::spawn(async move {
                    let _ = tell.send(refresh.run().await); // the caller may have gone; the new token is stored
                });
                match tokio::time::timeout(timing.patience, told).await {
                    Ok(Ok(Ok(()))) => {}
                    Ok(Ok(Err(trouble))) => return Err(trouble),
                    Ok(Err(_)) => {
                        return Err(NoToken::Failed(Fault::Transient(anyhow!("the refresh was interrupted"))));
                    }
                    // It costs an attempt, or a provider that never answers would be asked for ever. A reply that comes late is stored.
                    Err(_) => {
                        let what = "its provider is slow to renew the token";
                        return Err(NoToken::Failed(Fault::Transient(anyhow!(what))));
                    }
                }
            }
            Lease::Theirs => wait_for_other(env, tenant_id, source_id, held.version, began + timing.patience).await?,
        }
    }
}

/// The remaining time in which no new token is requested, because our own client was refused. Good tokens are used meanwhile.
async fn left_alone(env: &Env, provider: Provider) -> Result<Option<Duration>, NoToken> {
    let closed = within(DB_LIMIT, async {
        let mut conn = env.db.acquire().await?;
        gates::closed(&mut conn, env.clock.sql(), &[&breaker(provider)]).await
    });
    let closed = closed.await?.pop();
    Ok(closed.map(|closed| Duration::try_from_secs_f64(closed.secs).unwrap_or_default().max(Duration::from_secs(1))))
}

async fn held(env: &Env, tenant_id: TenantId, source_id: SourceId) -> Result<Held, NoToken> {
    let looked = within(DB_LIMIT, async {
        let mut conn = env.db.acquire().await?;
        tokens::held(&mut conn, env.clock.sql(), tenant_id, source_id).await
    });
    looked.await?.ok_or(NoToken::Failed(Fault::Refused { what: "the source is gone".into() }))
}

/// The stored token, if it is good now, or `is_new`. A key without a refresh token is good until its provider refuses it.
async fn usable(env: &Env, tenant_id: TenantId, held: &Held, is_new: bool) -> Result<Option<Token>, NoToken> {
    let Some(access_id) = held.access_id else {
        return Err(NoToken::Failed(Fault::Refused { what: "the source has no token: reconnect it".into() }));
    };
    let good_secs = match held.refresh_id {
        None => f64::INFINITY,
        Some(_) => good_secs(held, env.config.token_refresh_skew_seconds),
    };
    if good_secs <= 0.0 && !is_new {
        return Ok(None);
    }
    let good_for = Duration::try_from_secs_f64(good_secs.max(0.0)).ok();
    let mut conn = env.db.acquire().await?;
    // Missing: it was replaced between two looks, and the next one finds its successor.
    let access = env.vault.get(&mut conn, tenant_id, access_id).await?;
    let good_until = good_for.map(|good_for| Instant::now() + good_for);
    Ok(access.map(|access| Token { access, version: held.version, good_until }))
}

/// The time for which a token is used: a little less than it lives, but half of its life at least.
fn good_secs(held: &Held, skew_secs: u64) -> f64 {
    let half = held.life_secs.map_or(f64::INFINITY, |life| (life / 2.0).max(0.0));
    held.left_secs.unwrap_or(0.0) - (skew_secs as f64).min(half)
}

/// Waits until the version changes, without holding a connection. When the refresh failed, its lease is free; then the item waits, since
/// otherwise many workers would ask a provider that is down, one after the other.
async fn wait_for_other(
    env: &Env,
    tenant_id: TenantId,
    source_id: SourceId,
    seen: i64,
    until: Instant,
) -> Result<(), NoToken> {
    loop {
        let pause = rand::rng().random_range(50..=500);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let held = held(env, tenant_id, source_id).await?;
        if held.version != seen || held.status == SourceStatus::TokenRefreshFailed {
            return Ok(());
        }
        if !held.is_leased || Instant::now() > until {
            return Err(NoToken::Wait(Duration::from_secs(5), "another worker could not refresh its token"));
        }
    }
}

/// One refresh, from the lease to the stored pair.
struct Refresh {
    env: Env,
    tenant_id: TenantId,
    source_id: SourceId,
    provider: Provider,
    me: Uuid,
    held: Held,
    is_second: bool,
    lease: Duration,
}

impl Refresh {
    async fn run(self) -> Result<(), NoToken> {
        let Some(app) = self.env.providers.app(self.provider) else {
            return Err(self.our_fault("not_set_up", "its provider is not set up here any more").await?);
        };
        let mut conn = self.env.db.acquire().await?;
        if let Err(error) = self.env.vault.check_seals(&mut conn).await {
            drop(conn);
            self.let_go(true).await; // the provider was not asked: a new pair could not be stored, and the old one would be spent
            return Err(error.into());
        }
        let refresh = match self.held.refresh_id {
            Some(id) => self.env.vault.get(&mut conn, self.tenant_id, id).await?,
            None => None,
        };
        drop(conn); // none is held while the provider is asked
        let Some(refresh) = refresh else {
            self.let_go(true).await;
            return Err(NoToken::Failed(Fault::Transient(anyhow!("its refresh token was replaced meanwhile"))));
        };
        let asked = app.refresh(&self.env.http, &refresh);
        tokio::pin!(asked);
        let mut beat = tokio::time::interval(self.lease / 3);
        beat.tick().await;
        let replied = loop {
            tokio::select! {
                replied = &mut asked => break replied,
                _ = beat.tick() => self.keep().await,
            }
        };
        match replied {
            Ok(grant) => {
                crash::at(Point::TokenReplied)?;
                let pair = Pair {
                    access: &grant.access_token,
                    refresh: grant.refresh_token.as_ref(),
                    expires_in: Some(grant.expires_in.unwrap_or(ASSUMED_LIFE)),
                };
                self.store(&pair).await
            }
            Err(GrantError::Revoked { code }) => {
                let message = if self.is_second {
                    "refresh_outcome_unknown".to_owned()
                } else {
                    format!("refresh_token_invalid: {code}")
                };
                Err(refuse(&self.env, self.tenant_id, self.source_id, self.held.version, &message).await?)
            }
            Err(GrantError::OurClient) => {
                Err(self.our_fault("invalid_client", "the provider refuses our client id or secret").await?)
            }
            Err(GrantError::Wait { retry_after }) => {
                self.let_go(true).await;
                Err(NoToken::Failed(Fault::RateLimited { retry_after }))
            }
            Err(GrantError::Passing(words)) => {
                self.let_go(true).await;
                Err(NoToken::Failed(Fault::Transient(anyhow!(words).context("its token could not be refreshed"))))
            }
            // The refresh token may be spent. The next try with it knows that.
            Err(GrantError::Unknown(words)) => {
                self.let_go(false).await;
                Err(NoToken::Failed(Fault::Transient(
                    anyhow!(words).context("it is unknown whether its token was refreshed"),
                )))
            }
        }
    }

    /// Asks for no token for a while. No job ends, and `health` tells a person.
    async fn our_fault(&self, code: &str, why: &'static str) -> store::Result<NoToken> {
        let mut conn = self.env.db.acquire().await?;
        gates::close(&mut conn, self.env.clock.sql(), &breaker(self.provider), OUR_FAULT, code).await?;
        drop(conn);
        self.let_go(true).await;
        tracing::error!(provider = %self.provider, "no token of {} is renewed: {why}", self.provider.label);
        Ok(NoToken::Wait(Duration::from_secs(60), why))
    }

    /// Stores the pair, and does not give up because the database is away for a moment: nobody else has it.
    async fn store(&self, pair: &Pair<'_>) -> Result<(), NoToken> {
        for nth in 1.. {
            let (env, at) = (&self.env, self.env.clock.sql());
            let stored = within(DB_LIMIT, async {
                let mut tx = env.db.begin().await?;
                gates::worked(&mut tx, &[&breaker(self.provider)]).await?; // it knows our client
                let (tenant, source, seen) = (self.tenant_id, self.source_id, self.held.version);
                let is_stored = tokens::store(&mut tx, &env.vault, at, tenant, source, seen, pair).await?;
                // Another worker may have tried with the spent pair meanwhile, and given the source up.
                if is_stored && tokens::revive(&mut tx, at, tenant, source).await? {
                    let what = "The provider's answer came after all; it goes on where it stopped";
                    sources::tell(&mut tx, at, tenant, source, None, Tone::Good, what).await?;
                    if let Some(source) = sources::load(&mut tx, tenant, source).await? {
                        super::jobs::go_on(env, &mut tx, &source, "schedule").await?;
                    }
                }
                tx.commit().await
            });
            match stored.await {
                Ok(()) => break, // or somebody stored a newer pair: that one is good too
                Err(trouble) if trouble.is_passing() && nth < STORE_TRIES => {
                    self.keep().await;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(trouble) => return Err(trouble.into()),
            }
        }
        metrics::counter!("tributary_token_refreshes_total", "provider" => self.provider.name).increment(1);
        Ok(())
    }

    async fn keep(&self) {
        let kept = within(DB_LIMIT, async {
            let mut conn = self.env.db.acquire().await?;
            tokens::keep_lease(&mut conn, self.tenant_id, self.source_id, self.me, self.lease).await
        });
        if let Err(error) = kept.await {
            tracing::debug!(error = ?error, "a token's lease was not kept this time");
        }
    }

    /// Releases the lease. If that fails, the lease expires. A second try says nothing of how the first one ended.
    async fn let_go(&self, is_known: bool) {
        let is_known = is_known && !self.is_second;
        let ended = within(DB_LIMIT, async {
            let mut conn = self.env.db.acquire().await?;
            tokens::end_lease(&mut conn, self.tenant_id, self.source_id, self.me, is_known).await
        });
        if let Err(error) = ended.await {
            tracing::debug!(error = ?error, "a token's lease was not released; it expires");
        }
    }
}

/// The provider refused this token in the middle of its work. The next claim refreshes it; one that was fresh, or is a key, is no longer good.
pub async fn refused(env: &Env, tenant_id: TenantId, source_id: SourceId, used: &Token) -> Result<(), NoToken> {
    let held = held(env, tenant_id, source_id).await?;
    if held.version != used.version {
        return Ok(()); // somebody has refreshed it since
    }
    let is_fresh = held.age_secs.is_some_and(|age| age < FRESH_SECS);
    let message = match (&held.refresh_id, is_fresh) {
        (None, _) => "key_refused",
        (Some(_), true) => "unauthorized_after_refresh",
        (Some(_), false) => {
            let mut conn = env.db.acquire().await?;
            tokens::expire(&mut conn, tenant_id, source_id, used.version).await?;
            return Ok(());
        }
    };
    Err(refuse(env, tenant_id, source_id, used.version, message).await?)
}

/// Marks the source for a person to reconnect, unless a newer pair is stored by now.
async fn refuse(
    env: &Env,
    tenant_id: TenantId,
    source_id: SourceId,
    seen: i64,
    message: &str,
) -> store::Result<NoToken> {
    let mut tx = env.db.begin().await?;
    let at = env.clock.sql();
    let is_refused = tokens::refuse(&mut tx, at, tenant_id, source_id, seen, message).await?;
    if is_refused {
        let what =
            "The provider no longer accepts our token: it has to be reconnected. Everything read so far is kept.";
        sources::tell(&mut tx, at, tenant_id, source_id, None, Tone::Trouble, what).await?;
    }
    tx.commit().await?;
    Ok(if is_refused {
        NoToken::Reconnect
    } else {
        NoToken::Wait(Duration::from_secs(1), "its token was replaced meanwhile")
    })
}

/// The key of the gate that is closed while the provider refuses our client, for every tenant.
pub fn breaker(provider: Provider) -> String {
    format!("client:{provider}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_half_its_life_at_least() {
        let held = |left: Option<f64>, life: f64| Held {
            version: 1,
            access_id: None,
            refresh_id: None,
            left_secs: left,
            life_secs: Some(life),
            age_secs: None,
            status: SourceStatus::Active,
            status_message: None,
            is_leased: false,
        };
        for (left, life, skew, good) in [
            (Some(1_800.0), 1_800.0, 60, 1_740.0),
            (Some(60.0), 1_800.0, 60, 0.0),
            (Some(60.0), 60.0, 60, 30.0),
            (Some(1_800.0), 1_800.0, 3_600, 900.0),
            (Some(-5.0), 0.0, 60, -5.0),
        ] {
            assert_eq!(good_secs(&held(left, life), skew), good, "{left:?} of {life}, {skew}");
        }
        assert!(good_secs(&held(None, 1_800.0), 60) < 0.0, "one that was refused is not good");
    }
}
