//! A quota that is used up. Some providers say the same of a minute's quota and of a month's: the longer one is known by waits that do not
//! help.

use std::time::Duration;

use connectors::pull::PullError;
use domain::Fault;
use store::gates;
use store::sources::{self, Tone};

use super::Run;

/// Waits in a row, without an answer between them.
const USED_UP_AFTER: i32 = 3;
const USED_UP_WAIT: Duration = Duration::from_secs(3_600);

impl Run<'_> {
    /// The same, with a longer wait where short ones do not help.
    pub(super) async fn more_patient(&self, error: PullError) -> Result<PullError, Fault> {
        let PullError::RateLimited { who, retry_after } = error else { return Ok(error) };
        let as_told = Ok(PullError::RateLimited { who, retry_after });
        if !self.reader.provider.hides_long_quota {
            return as_told;
        }
        let [.., account] = self.gates();
        let mut note = self.lease.begin_note(self.env).await?;
        let waits = gates::failed(&mut note, &account).await?;
        if waits == USED_UP_AFTER {
            let what = format!(
                "{who} refuses however long we wait: its quota of the day or month may be used up. It is asked once an hour"
            );
            let (at, job_id) = (self.env.clock.sql(), Some(self.job_id));
            sources::tell(&mut note, at, self.tenant_id, self.source_id, job_id, Tone::Trouble, &what).await?;
        }
        note.commit().await?;
        if waits < USED_UP_AFTER {
            return as_told;
        }
        Ok(PullError::RateLimited { who, retry_after: retry_after.max(USED_UP_WAIT) })
    }
}
