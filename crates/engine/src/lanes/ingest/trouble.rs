//! Settles a job that cannot go on now: what is stored, what a person is told, and what its message does.

use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::anyhow;
use connectors::pull::PullError;
use domain::{Fault, SourceStatus};
use serde_json::{Value, json};
use store::sources::{self, Tone};
use store::{Tx, failures, gates, jobs};

use super::{Ingest, MOST_RESTARTS, Run, Trouble, UNREADABLE};
use crate::mail::pending;
use crate::pull::tokens::{self, NoToken};
use crate::work::{Effect, Lane as _, Outcome};

/// Failures in a row, of one tenant at one provider, after which it is left alone for a while. Fewer than a job has attempts, so that
/// minutes of an outage end none.
const BREAKS_AFTER: i32 = 3;
/// It is left alone for twice the time for which it has failed: not longer after many failures of one moment, and never so long that people
/// wait for what a provider that is well again has.
const LEFT_ALONE: RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(300);

impl Run<'_> {
    /// Stores why the job does not go on, and returns what its message does. A worker that has lost the message writes nothing.
    pub(super) async fn settle(&self, trouble: Trouble) -> Result<Outcome, Fault> {
        let fault = match trouble {
            Trouble::Ours(fault) => return self.note_ours(fault).await,
            Trouble::Token(no_token) => return self.without_token(no_token).await,
            Trouble::WornOut(what) => return self.worn_out(what).await,
            Trouble::Pull(PullError::Unauthorized { .. }, token) => {
                return match tokens::refused(self.env, self.tenant_id, self.source_id, &token).await {
                    Ok(()) => {
                        let what = "the provider refused its token, which is refreshed";
                        self.note("unauthorized", what, false, None).await?;
                        Ok(Outcome::Snooze(Duration::from_secs(1), "its token is refreshed"))
                    }
                    Err(no_token) => self.without_token(no_token).await,
                };
            }
            Trouble::Pull(error, _) => self.more_patient(error).await?,
        };
        let (words, at) = (fault.to_string(), self.env.clock.sql());
        match fault {
            PullError::RateLimited { retry_after, .. } => {
                let mut effect = self.lease.begin_note(self.env).await?;
                let [.., account] = self.gates();
                gates::close(&mut effect, at, &account, retry_after, &words).await?;
                let told = format!("{words}; it continues automatically");
                self.write(&mut effect, "rate_limited", &words, false, Some(&told)).await?;
                if self.is_mailbox() {
                    pending::put_back(self.env, &mut effect, self.whose(), None, retry_after).await?;
                }
                effect.commit().await?;
                Err(Fault::RateLimited { retry_after })
            }
            PullError::Forbidden { code, .. } => {
                let mut effect = self.lease.begin_note(self.env).await?;
                let message = format!("forbidden: {code}");
                sources::set_refused(&mut effect, at, self.tenant_id, self.source_id, &message).await?;
                jobs::fail_with(&mut effect, self.tenant_id, self.job_id, &message).await?;
                self.write(&mut effect, "forbidden", &words, true, Some(&words)).await?;
                effect.commit().await?;
                Err(Fault::Refused { what: words })
            }
            PullError::Unreadable { what, raw } => {
                let row = [(UNREADABLE.to_owned(), what.clone(), json!({ "raw": raw }))];
                self.failed("unreadable", &what, &row).await
            }
            PullError::Ours(what) => self.note_ours(Fault::Away(anyhow!(what))).await,
            PullError::Passing(what) => self.failed("provider", &what, &[]).await,
            PullError::CursorLost(what) => self.failed("cursor", what, &[]).await,
            PullError::Unauthorized { .. } => self.failed("unauthorized", &words, &[]).await,
        }
    }

    /// A failed attempt at the provider. Several in a row keep everybody of this tenant away from it for a while.
    async fn failed(&self, kind: &str, what: &str, unread: &[(String, String, Value)]) -> Result<Outcome, Fault> {
        let mut effect = self.lease.begin_note(self.env).await?;
        let (at, tenant_id, breaker) = (self.env.clock.sql(), self.tenant_id, self.breaker());
        let failing = gates::failed(&mut effect, at, &breaker).await?;
        if failing.failures >= BREAKS_AFTER {
            let wait = (failing.age() * 2).clamp(*LEFT_ALONE.start(), *LEFT_ALONE.end());
            gates::close(&mut effect, at, &breaker, wait, what).await?;
        }
        if !unread.is_empty() {
            failures::note(&mut effect, at, tenant_id, self.source_id, self.job_id, unread).await?;
        }
        let told = format!("{what}; it is retried automatically");
        self.write(&mut effect, kind, what, true, Some(&told)).await?;
        if self.is_mailbox() && self.lease.attempt() >= Ingest::MAX_ATTEMPTS {
            return self.slowly(effect, kind).await;
        }
        effect.commit().await?;
        Err(Fault::Transient(anyhow!(what.to_owned())))
    }

    /// The provider lost our place in each try of a round. The lease's attempts say nothing of that, because each try got on for a while: the job's failures
    /// are counted.
    async fn worn_out(&self, what: &str) -> Result<Outcome, Fault> {
        let mut effect = self.lease.begin_note(self.env).await?;
        let told = format!("{what}, in each of {} tries: the next one begins anew", MOST_RESTARTS + 1);
        self.write(&mut effect, "cursor", what, true, Some(&told)).await?;
        if self.is_mailbox() || self.job.error_count + 1 < Ingest::MAX_ATTEMPTS {
            return self.slowly(effect, "cursor").await;
        }
        effect.commit().await?;
        Err(Fault::Refused { what: told })
    }

    /// The job goes on, slowly. A mailbox is never given up, and says that it fails.
    async fn slowly(&self, mut effect: Effect<'_>, kind: &str) -> Result<Outcome, Fault> {
        let wait = pending::slowly(self.job.error_count + 1, Ingest::MAX_ATTEMPTS);
        if self.is_mailbox() {
            let (at, message) = (self.env.clock.sql(), format!("failing: {kind}"));
            sources::set_refused(&mut effect, at, self.tenant_id, self.source_id, &message).await?;
            pending::put_back(self.env, &mut effect, self.whose(), None, wait).await?;
        }
        effect.commit().await?;
        Ok(Outcome::Snooze(wait, "it failed several times in a row and is tried again later"))
    }

    async fn note_ours(&self, fault: Fault) -> Result<Outcome, Fault> {
        if !matches!(fault, Fault::Stale) {
            let words = fault.in_words();
            let _ = self.note("ours", &words, true, None).await; // the database may be what is wrong
        }
        Err(fault)
    }

    async fn without_token(&self, no_token: NoToken) -> Result<Outcome, Fault> {
        match no_token {
            NoToken::Wait(wait, why) => {
                self.note("token", why, false, None).await?;
                Ok(Outcome::Snooze(wait, why))
            }
            NoToken::Failed(Fault::RateLimited { retry_after }) => {
                let what = format!("{} asked us to wait before it renews the token", self.reader.provider.label);
                let told = format!("{what}; it continues automatically");
                self.note("rate_limited", &what, false, Some(&told)).await?;
                Err(Fault::RateLimited { retry_after })
            }
            NoToken::Failed(fault @ Fault::Transient(_)) => self.failed("token", &fault.in_words(), &[]).await,
            NoToken::Failed(fault) => {
                let words = fault.in_words();
                self.note("token", &words, true, Some(&words)).await?;
                Err(fault)
            }
            NoToken::Reconnect => {
                let mut effect = self.lease.begin_note(self.env).await?;
                let held = store::tokens::held(&mut effect, None, self.tenant_id, self.source_id).await?;
                if held.as_ref().is_some_and(|held| held.status == SourceStatus::Active) {
                    return Ok(Outcome::Snooze(Duration::from_secs(1), "its token came after all"));
                }
                let code = held.and_then(|held| held.status_message).unwrap_or_else(|| "refresh_token_invalid".into());
                jobs::fail_with(&mut effect, self.tenant_id, self.job_id, &code).await?;
                effect.commit().await?;
                Err(Fault::Reauthorize)
            }
        }
    }

    async fn note(&self, kind: &str, what: &str, is_failure: bool, told: Option<&str>) -> Result<(), Fault> {
        let mut effect = self.lease.begin_note(self.env).await?;
        self.write(&mut effect, kind, what, is_failure, told).await?;
        effect.commit().await?;
        Ok(())
    }

    async fn write(
        &self,
        tx: &mut Tx,
        kind: &str,
        what: &str,
        is_failure: bool,
        told: Option<&str>,
    ) -> Result<(), Fault> {
        let (at, tenant_id, job_id) = (self.env.clock.sql(), self.tenant_id, self.job_id);
        jobs::trouble(tx, at, tenant_id, job_id, kind, what, is_failure).await?;
        if self.is_mailbox() {
            let wait = if is_failure { pending::after_failure(self.lease.attempt()) } else { Duration::ZERO };
            pending::put_back(self.env, tx, self.whose(), is_failure.then_some(what), wait).await?;
        }
        if let Some(told) = told {
            sources::tell(tx, at, tenant_id, self.source_id, Some(job_id), Tone::Trouble, told).await?;
        }
        Ok(())
    }
}
