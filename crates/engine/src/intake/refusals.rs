//! Refusals: what the sender is told, and what the channel's owner can read later. Alike ones are counted together and written once a
//! second; nothing of the request's body is kept.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::{ChannelId, TenantId};
use store::channels::{self, NewRefusal};

use super::channels::Channel;
use super::normalise::Malformed;
use crate::Env;

const EVERY: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(5);
/// Different refusals that wait to be written; further ones are only counted in the metrics.
const MOST_WAITING: usize = 1_000;

/// Why a request was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the key, or the signature, is not accepted")]
    Unverified,
    #[error("the body is larger than {most} bytes")]
    TooLarge { most: usize },
    #[error("the body cannot be understood: {0}")]
    Malformed(&'static str),
    #[error("its body did not arrive in full")]
    Unfinished,
    #[error("too many requests")]
    TooMany { wait: Duration },
    #[error("too much is waiting already")]
    Full,
    #[error("the database is away")]
    Away(#[source] store::Error),
    #[error("the event could not be stored")]
    Broken(#[source] store::Error),
}

impl Refusal {
    /// A channel could not be looked up.
    pub(super) fn of_lookup(error: store::Error) -> Self {
        if error.is_passing() { Self::Away(error) } else { Self::Broken(error) }
    }

    /// The database refused one row.
    pub(super) fn of_insert(error: store::Error) -> Self {
        match error.code().as_deref() {
            Some("23503") => Self::Unverified, // foreign key: its tenant is gone, and the channel with it
            Some(code) if code.starts_with("22") => Self::Malformed("it has values that cannot be stored"),
            _ => Self::Broken(error),
        }
    }

    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Unverified => 401,
            Self::TooLarge { .. } => 413,
            Self::Malformed(_) | Self::Unfinished => 400,
            Self::TooMany { .. } => 429,
            Self::Full | Self::Away(_) => 503,
            Self::Broken(_) => 500,
        }
    }

    pub(super) fn count(&self, channel: Option<&Channel>) {
        let reason = match self {
            Self::Unverified => "unverified",
            Self::TooLarge { .. } => "too_large",
            Self::Malformed(_) => "malformed",
            Self::Unfinished => "unfinished",
            Self::TooMany { .. } => "too_many",
            Self::Full => "full",
            Self::Away(_) => "away",
            Self::Broken(_) => "broken",
        };
        let channel = channel.map_or_else(|| "unknown".to_owned(), |channel| channel.id.to_string());
        metrics::counter!("tributary_intake_refused_total", "reason" => reason, "channel" => channel).increment(1);
    }
}

impl From<Malformed> for Refusal {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Alike {
    tenant_id: TenantId,
    channel_id: ChannelId,
    status: u16,
    reason: String,
    address: IpAddr,
}

/// Refusals that wait to be written.
#[derive(Default)]
pub(super) struct Refusals(Mutex<HashMap<Alike, i32>>);

impl Refusals {
    pub fn note(&self, tenant_id: TenantId, channel_id: ChannelId, status: u16, reason: String, address: IpAddr) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = Alike { tenant_id, channel_id, status, reason, address };
        let is_full = waiting.len() >= MOST_WAITING;
        match waiting.get_mut(&alike) {
            Some(n) => *n = n.saturating_add(1),
            None if is_full => {}
            None => drop(waiting.insert(alike, 1)),
        }
    }

    /// Writes them to the database until dropped.
    pub async fn write(&self, env: &Env) {
        loop {
            tokio::time::sleep(EVERY).await;
            let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
            if noted.is_empty() {
                continue;
            }
            let refusals: Vec<NewRefusal> = noted.iter().map(row).collect();
            let written = store::within(LIMIT, async {
                let mut conn = env.db.acquire().await?;
                channels::add_refusals(&mut conn, &refusals).await
            });
            if let Err(error) = written.await {
                tracing::debug!(error = ?error, "{} kinds of refusals are not written yet", refusals.len());
                let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                for (alike, n) in noted {
                    *waiting.entry(alike).or_default() += n; // bounded: no more than were there
                }
            }
        }
    }
}

fn row((alike, n): (&Alike, &i32)) -> NewRefusal {
    NewRefusal {
        tenant_id: alike.tenant_id,
        channel_id: alike.channel_id,
        status: alike.status,
        reason: alike.reason.clone(),
        address: alike.address.to_string(),
        n: *n,
    }
}
