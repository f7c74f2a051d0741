//! Settles a count that cannot go on now: it waits, it is tried again, or its days are put aside with the reason. Nothing is given up for good: a day
//! that was not counted says so, and is counted another time.

use std::time::Duration;

use anyhow::anyhow;
use connectors::pull::PullError;
use domain::Fault;
use store::gates;

use super::Run;
use super::at_provider::{AtProvider, is_passing};
use crate::pull::tokens::{self, NoToken, Token};
use crate::work::Outcome;

/// After so many attempts the days are put aside.
const MOST_TRIES: i32 = 3;

pub(super) enum Trouble {
    /// The provider's error, and the token it was asked with.
    Pull(PullError, Token),
    Token(NoToken),
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

impl Run<'_> {
    pub(super) async fn settle(&self, there: &AtProvider, trouble: Trouble) -> Result<Outcome, Fault> {
        match trouble {
            Trouble::Ours(Fault::Refused { what }) => self.put_all_aside(&what).await,
            Trouble::Ours(fault) => Err(fault),
            Trouble::Token(no_token) => self.without_token(no_token).await,
            Trouble::Pull(PullError::Unauthorized { .. }, token) => {
                match tokens::refused(self.env, self.tenant_id, self.source_id, &token).await {
                    Ok(()) => Ok(Outcome::Snooze(Duration::from_secs(1), "its token is refreshed")),
                    Err(no_token) => self.without_token(no_token).await,
                }
            }
            Trouble::Pull(error @ PullError::RateLimited { retry_after, .. }, _) => {
                let (mut note, [_, account]) = (self.lease.begin_note(self.env).await?, there.gates());
                gates::close(&mut note, self.env.clock.sql(), &account, retry_after, &error.to_string()).await?;
                note.commit().await?;
                Err(Fault::RateLimited { retry_after })
            }
            Trouble::Pull(PullError::Ours(what), _) => Err(Fault::Away(anyhow!(what))),
            Trouble::Pull(error, _) if is_passing(&error) && self.lease.attempt() < MOST_TRIES => {
                Err(Fault::Transient(anyhow!(error.to_string())))
            }
            Trouble::Pull(error, _) => self.put_all_aside(&error.to_string()).await,
        }
    }

    async fn without_token(&self, no_token: NoToken) -> Result<Outcome, Fault> {
        match no_token {
            NoToken::Wait(wait, why) => Ok(Outcome::Snooze(wait, why)),
            NoToken::Reconnect => self.put_all_aside("the source has to be reconnected first").await,
            NoToken::Failed(fault @ (Fault::RateLimited { .. } | Fault::Away(_) | Fault::Stale)) => Err(fault),
            NoToken::Failed(fault) if self.lease.attempt() < MOST_TRIES => Err(fault),
            NoToken::Failed(fault) => self.put_all_aside(&fault.in_words()).await,
        }
    }
}
