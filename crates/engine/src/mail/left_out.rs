//! Letters that rules left out, as people look at them and let them in.

use chrono::{DateTime, Utc};
use domain::shown::clipped;
use domain::text::has_nul;
use domain::{Caller, SourceId};
use store::mail::processed::{self, After, LeftOutLetter, LetIn, ReasonCount};

use super::letters::PREFIX;
use super::settings::mailbox;
use crate::act::OrMissing as _;
use crate::pull::jobs;
use crate::{ActError, Env};

/// The most letters that are let in at once: as many as one job reads.
pub const MOST_LET_IN: i64 = 500;

/// A page of what a mailbox's rules left out.
#[derive(Clone, Debug)]
pub struct LeftOutPage {
    /// The latest first.
    pub letters: Vec<LeftOutLetter>,
    /// Passed as `after`, it gives the next page. None: this is the last.
    pub next: Option<String>,
}

/// Lists what was left out, all of it or by one rule, the latest first.
pub async fn list(
    env: &Env,
    caller: &Caller,
    source_id: SourceId,
    reason: Option<&str>,
    after: Option<&str>,
    limit: i64,
) -> Result<LeftOutPage, ActError> {
    if [reason, after].into_iter().flatten().any(has_nul) {
        return Err(ActError::invalid("a parameter has a NUL character"));
    }
    mailbox(env, caller, source_id).await?;
    let after = after.map(parsed).transpose()?;
    let letters = env.db.read(caller, async |tx| {
        processed::left_out(tx, caller.tenant_id, source_id, reason, after.as_ref(), limit).await
    });
    let letters = letters.await?;
    let is_full = i64::try_from(letters.len()).is_ok_and(|n| n >= limit);
    let next = letters.last().filter(|_| is_full).map(spelled);
    Ok(LeftOutPage { letters, next })
}

/// Counts what was left out by rule, the commonest first.
pub async fn count_by_reason(env: &Env, caller: &Caller, source_id: SourceId) -> Result<Vec<ReasonCount>, ActError> {
    mailbox(env, caller, source_id).await?;
    Ok(env.db.read(caller, async |tx| processed::reasons(tx, caller.tenant_id, source_id).await).await?)
}

/// Lets in a letter that a rule left out: it is asked for again, and no rule is asked about it any more.
pub async fn let_in(env: &Env, caller: &Caller, source_id: SourceId, message_id: &str) -> Result<(), ActError> {
    let message_id = message_id.strip_prefix(PREFIX).unwrap_or(message_id);
    if has_nul(message_id) {
        return Err(ActError::NotFound("message that was left out"));
    }
    let (asked, _) = ask(env, caller, source_id, LetIn::Letter(message_id)).await?;
    (asked == 1).or_missing("message that was left out")
}

/// The outcome of letting in what a rule left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetInAll {
    /// Letters that are on their way.
    pub asked: usize,
    /// Letters that wait for another time: a job reads only so many.
    pub left: i64,
}

/// Lets in what one rule left out, up to [`MOST_LET_IN`] of it, the latest first.
pub async fn let_in_all(env: &Env, caller: &Caller, source_id: SourceId, reason: &str) -> Result<LetInAll, ActError> {
    if has_nul(reason) {
        return Err(ActError::NotFound("message that this rule left out"));
    }
    let (asked, over) = ask(env, caller, source_id, LetIn::Reason(reason)).await?;
    (asked > 0).or_missing("message that this rule left out")?;
    let counted = count_by_reason(env, caller, source_id).await?;
    let all = counted.iter().find(|counted| counted.skip_reason == reason).map_or(0, |counted| counted.letters);
    let asked = asked.saturating_sub(over);
    Ok(LetInAll { asked, left: (all - i64::try_from(asked).unwrap_or(0)).max(0) })
}

/// Marks letters and asks for them in one commit. Returns how many were marked, and how many of them a job has no room for.
async fn ask(env: &Env, caller: &Caller, source_id: SourceId, which: LetIn<'_>) -> Result<(usize, usize), ActError> {
    mailbox(env, caller, source_id).await?;
    let (tenant_id, by) = (caller.tenant_id, clipped(&caller.key_name, 60));
    let asked = env.db.write(async |tx| -> Result<(usize, usize), ActError> {
        let at = env.clock.sql();
        let ids = processed::let_in(tx, at, (tenant_id, source_id), which, &by, MOST_LET_IN).await?;
        if ids.is_empty() {
            return Ok((0, 0));
        }
        let names: Vec<String> = ids.iter().map(|id| format!("{PREFIX}{id}")).collect();
        let (_, over) =
            jobs::read_again(env, tx, tenant_id, source_id, &names, "person").await?.or_missing("source")?;
        tx.notify(store::sources::changed(tenant_id, source_id));
        Ok((ids.len(), over))
    });
    let (asked, over) = asked.await?;
    tracing::info!(source.id = %source_id, tenant.id = %tenant_id, "{asked} letters of source {source_id} were let in, as key {} asked", caller.key_id);
    Ok((asked, over))
}

fn spelled(letter: &LeftOutLetter) -> String {
    format!("{}/{}", letter.received_at.timestamp_micros(), letter.message_id)
}

fn parsed(after: &str) -> Result<After, ActError> {
    let read = || {
        let (micros, id) = after.split_once('/')?;
        Some((DateTime::<Utc>::from_timestamp_micros(micros.parse().ok()?)?, id.to_owned()))
    };
    read().ok_or_else(|| ActError::invalid("after is none of the places that a page ends with"))
}
