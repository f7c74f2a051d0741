//! Refusals: what the sender is told, and what the channel's owner can read later. Alike ones are counted together and written once a
//! second; nothing of the request's body is kept.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use connectors::guide::Advice;
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

/// Explains the refusals that channels of every provider have, by the beginning of the reason that the owner reads.
pub(super) static ADVICE: [Advice; 11] = [
    Advice {
        says: "the channel is disabled",
        means: "This webhook is switched off, or its secret is too short.",
        todo: "Press Enable on its page. If it does not stay on, replace the secrets.",
    },
    Advice {
        says: "the key, or the signature, is not accepted",
        means: "The webhook was removed while the request arrived.",
        todo: "Give the sender the URL of a webhook that is there.",
    },
    Advice {
        says: "the body is larger than",
        means: "The event has more bytes than are taken in at once.",
        todo: "Let the sender send less: leave out files, or send them one by one to the API as documents.",
    },
    Advice {
        says: "the body cannot be understood",
        means: "The body is not what its content type says. The rest of the reason names what is wrong.",
        todo: "Change what the sender sends: the same body is refused again. Bodies are UTF-8 and have no Content-Encoding.",
    },
    Advice {
        says: "its body did not arrive in full",
        means: "The sender left before the end, or took too long.",
        todo: "Look at the network between the two. If you do not know the address, somebody has the URL: replace it under Settings.",
    },
    Advice {
        says: "too many requests",
        means: "The sender sent more in a minute than this webhook takes.",
        todo: "Raise the limit under Settings, or let the sender wait as long as Retry-After says.",
    },
    Advice {
        says: "too much is waiting already",
        means: "Events arrive faster than the database stores them.",
        todo: "Do nothing: the sender was told to try again. If it lasts, run `tributary doctor`.",
    },
    Advice {
        says: "the database is away",
        means: "The database did not answer in time.",
        todo: "Do nothing: the sender was told to try again. Run `tributary doctor` if the database is still away.",
    },
    Advice {
        says: "the event could not be stored",
        means: "The database refused the event for a reason that is no fault of the sender's.",
        todo: "Look for the reason in the log of the server, and report it.",
    },
    Advice {
        says: "its files could not be stored in time",
        means: "The files of the event could not be written to the object storage in time.",
        todo: "Do nothing: the sender was told to try again. Run `tributary doctor`: it looks at the storage.",
    },
    Advice {
        says: "it could not be written to this server's disk",
        means: "The disk of this server is full, or the data folder is not writable.",
        todo: "Do nothing: the sender was told to try again. Run `tributary doctor`: it looks at the disk.",
    },
];

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

#[cfg(test)]
mod tests {
    use connectors::guide::{Mark, by_reason, faults_of};
    use store::Error;

    use super::*;

    /// Lists every refusal. A new one does not compile until it is here.
    fn all() -> Vec<Refusal> {
        let listed = vec![
            Refusal::Unverified,
            Refusal::TooLarge { most: 7 },
            Refusal::Malformed("it is no JSON"),
            Refusal::Unfinished,
            Refusal::TooMany { wait: EVERY },
            Refusal::Full,
            Refusal::Away(Error::TimedOut),
            Refusal::Broken(Error::TimedOut),
        ];
        for refusal in &listed {
            match refusal {
                Refusal::Unverified
                | Refusal::TooLarge { .. }
                | Refusal::Malformed(_)
                | Refusal::Unfinished
                | Refusal::TooMany { .. }
                | Refusal::Full
                | Refusal::Away(_)
                | Refusal::Broken(_) => {}
            }
        }
        listed
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        let faults = faults_of(Mark("<path d=\"M1 1\"/>"), &[], &ADVICE);
        assert!(faults.is_empty(), "{faults:?}");
        for reason in all().iter().map(ToString::to_string) {
            assert!(by_reason(&ADVICE, &reason).is_some(), "{reason:?}");
        }
        // The reasons that are not a refusal's own words, as the sources have them.
        for source in [include_str!("delivery.rs"), include_str!("guard/mod.rs")] {
            let said = source.split("Some(\"").chain(source.split("Err(\"")).filter_map(|text| text.split('"').next());
            let reasons = said.filter(|text| text.contains(' ') && !text.contains('\n'));
            for reason in reasons {
                assert!(by_reason(&ADVICE, reason).is_some() || reason == "nobody's key", "{reason:?}");
            }
        }
    }
}
