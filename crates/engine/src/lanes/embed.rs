//! Embeds documents that were not embedded when they were remembered: the embedder was away or wrong, the month's money was spent, or there
//! were more chunks than a caller waits for.

use std::time::Duration;

use chrono::{DateTime, Datelike as _, Months, NaiveTime, Utc};
use domain::{DocumentId, Fault};
use serde::{Deserialize, Serialize};
use store::memory::{chunks, documents};
use store::spend::{self, Spent};
use uuid::Uuid;

use crate::Env;
use crate::memory::embed::{Embedded, TenantEmbedder};
use crate::memory::{Reservation, reserve, told};
use crate::work::{Lane, Lease, Outcome};

/// The time to wait while calls under way may use up the month's money; their reservations lapse after ten minutes.
pub(super) const OTHERS_CALLS: Duration = Duration::from_secs(120);

/// How long a worker leaves an item alone whose model it cannot ask.
pub(super) const NOT_HERE: Duration = Duration::from_secs(60);

/// The number of chunks that are embedded before they are written. More would be lost with a worker that dies.
const MOST_CHUNKS: usize = 256;

#[derive(Serialize, Deserialize)]
pub struct Embed {
    pub document_id: DocumentId,
}

impl Lane for Embed {
    const NAME: &'static str = "embed";
    const BATCH: u32 = 8;
    /// About two days: an embedder may be away for a weekend.
    const MAX_ATTEMPTS: i32 = 300;

    /// Safe to repeat: only chunks without a vector are embedded, and a text that changed meanwhile is not marked.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let tenant_id = lease.tenant_id()?;
        let TenantEmbedder { embedder, table, memory, is_askable, .. } = TenantEmbedder::look(env, tenant_id).await?;
        if !is_askable {
            return Ok(Outcome::Snooze(
                NOT_HERE,
                "the settings of this worker describe no embedder of its memory's model",
            ));
        }
        let mut conn = env.db.acquire().await?;
        let Some(pending) = documents::pending(&mut conn, tenant_id, self.document_id).await? else {
            return Ok(Outcome::Done); // embedded, changed or gone since
        };
        // One more tells whether this is the last step.
        let most = MOST_CHUNKS + 1;
        let mut lacking = chunks::without_vectors(&mut conn, tenant_id, &table, self.document_id, most).await?;
        drop(conn);
        let has_more = lacking.len() > MOST_CHUNKS;
        lacking.truncate(MOST_CHUNKS);
        let texts: Vec<&str> = lacking.iter().map(|(_, text)| text.as_str()).collect();
        let reservation = match reserve(env, &embedder, tenant_id, texts.iter().map(|text| text.len()).sum()).await? {
            Reservation::Free => None,
            Reservation::Held(id) => Some(id),
            Reservation::Busy => return Ok(Outcome::Snooze(OTHERS_CALLS, "budget: others' calls are under way")),
            Reservation::Spent => {
                let until_then = until_next_month(env.clock.now());
                return Ok(Outcome::Snooze(until_then, "budget: what vectors may cost this month is spent"));
            }
        };
        let answered = embedder.embed_documents(&texts).await;
        told(env, &embedder, &answered).await;
        let Embedded { vectors, spent, fault } = answered?;
        let (is_paid, reservations) = (embedder.is_service() && spent.calls > 0, reservation.as_slice());
        // A part of the vectors is progress: they are kept, and the item continues with the rest.
        let is_whole = fault.is_none() && !has_more;
        let mut effect = if is_whole { lease.begin(env).await? } else { lease.begin_step(env).await? };
        let now = store::memory::hold_pointer(&mut effect, tenant_id).await?;
        if (&now.model, &now.to_model) != (&memory.model, &memory.to_model) {
            drop(effect);
            if is_paid {
                // Nothing is written, and the service is paid all the same.
                let mut conn = env.db.acquire().await?;
                spend::settle(&mut conn, env.clock.sql(), tenant_id, table.model(), reservations, &spent).await?;
            }
            return Ok(Outcome::Snooze(Duration::ZERO, "its memory has another model now"));
        }
        let still = documents::lock(&mut effect, tenant_id, &[pending.id]).await?;
        if still.first().is_some_and(|now| now.revision == pending.revision && !now.is_deleted) {
            let mut rows: Vec<(Uuid, Uuid, &[f32])> =
                lacking.iter().zip(&vectors).map(|((id, _), vector)| (*id, pending.id, vector.as_slice())).collect();
            rows.sort_unstable_by_key(|(id, ..)| *id); // as a move inserts them
            chunks::insert_vectors(&mut effect, tenant_id, &table, &rows).await?;
            if is_whole {
                documents::mark_embedded(&mut effect, tenant_id, &pending, &table).await?;
            }
        }
        // After the document, as in `remember`: two transactions never wait for each other in a ring.
        if is_paid {
            let spent = Spent { documents: i64::from(is_whole), ..spent };
            spend::settle(&mut effect, env.clock.sql(), tenant_id, table.model(), reservations, &spent).await?;
        }
        let done = effect.commit().await?;
        match fault {
            Some(fault) => Err(fault),
            None if has_more => Ok(Outcome::Snooze(Duration::ZERO, "the document has more chunks")),
            None => Ok(done),
        }
    }
}

/// The time until the next month begins, in UTC as in table `usage`.
pub(super) fn until_next_month(now: DateTime<Utc>) -> Duration {
    let first = now.date_naive().with_day(1).and_then(|first| first.checked_add_months(Months::new(1)));
    let begins = first.map(|first| first.and_time(NaiveTime::MIN).and_utc());
    begins.and_then(|begins| (begins - now).to_std().ok()).unwrap_or(OTHERS_CALLS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_months_money_comes_back_on_the_first() {
        let until = |now: &str| until_next_month(now.parse().expect("a time")).as_secs();
        assert_eq!(until("2026-11-30T23:59:00Z"), 60);
        assert_eq!(until("2026-12-31T00:00:00Z"), 86_400);
        assert_eq!(until("2028-02-01T00:00:00Z"), 29 * 86_400);
    }
}
