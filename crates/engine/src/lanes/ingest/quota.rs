//! A quota that is used up. Some providers say the same of a minute's quota and of a month's: the longer one is known by waits that do not
//! help.

use std::time::Duration;

use connectors::pull::PullError;
use domain::Fault;
use store::gates;
use store::sources::{self, Tone};

use super::Run;

/// Waits in a row, without an answer between them, after which short waits do not help. Providers ask for a second, too: so many are over before
/// the quota of a minute is new.
const MOST_WAITS: i32 = 3;
const SHORT: Duration = Duration::from_secs(120);
const USED_UP_WAIT: Duration = Duration::from_secs(3_600);

impl Run<'_> {
    /// The same, with a longer wait where short ones do not help.
    pub(super) async fn more_patient(&self, error: PullError) -> Result<PullError, Fault> {
        let PullError::RateLimited { who, retry_after } = error else { return Ok(error) };
        let as_told = Ok(PullError::RateLimited { who, retry_after });
        if !self.reader.provider.hides_long_quota {
            return as_told;
        }
        let (at, [.., account]) = (self.env.clock.sql(), self.gates());
        let mut note = self.lease.begin_note(self.env).await?;
        let refused = gates::failed(&mut note, at, &account).await?;
        let is_used_up = refused.failures >= MOST_WAITS && refused.age() >= SHORT;
        if is_used_up && refused.age() < USED_UP_WAIT {
            let what = format!(
                "{who} refuses however long we wait: its quota of the day or month may be used up. It is asked once an hour"
            );
            sources::tell(&mut note, at, self.tenant_id, self.source_id, Some(self.job_id), Tone::Trouble, &what)
                .await?;
        }
        note.commit().await?;
        if !is_used_up {
            return as_told;
        }
        Ok(PullError::RateLimited { who, retry_after: retry_after.max(USED_UP_WAIT) })
    }
}
