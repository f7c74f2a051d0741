//! Forgets a source: removes everything that came from it step by step, and at last the source itself.

use domain::{Fault, SourceId, SourceStatus};
use serde::{Deserialize, Serialize};
use store::crash::{self, Point};
use store::{forgotten, sources};
use uuid::Uuid;

use crate::Env;
use crate::work::{Lane, Lease, Outcome};

/// How many documents one commit removes.
const STEP: i64 = 500;

#[derive(Serialize, Deserialize)]
pub struct Forget {
    pub source_id: SourceId,
    pub forgotten_id: Uuid,
}

impl Lane for Forget {
    const NAME: &'static str = "forget";
    const IS_LONG: bool = true;

    /// Safe to repeat: each commit removes documents and counts them.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let tenant_id = lease.tenant_id()?;
        loop {
            let mut effect = lease.begin_step(env).await?;
            // A buried item may be replayed after somebody has connected the account again.
            let status = sources::locked_status(&mut effect, tenant_id, self.source_id).await?;
            if status.is_some_and(|status| status != SourceStatus::Disconnected) {
                return Ok(Outcome::Cancel("its source was connected again"));
            }
            let gone = forgotten::remove_documents(&mut effect, tenant_id, self.source_id, STEP).await?;
            if gone == 0 {
                break;
            }
            forgotten::note(&mut effect, tenant_id, self.forgotten_id, "documents", gone).await?;
            effect.notify(sources::changed(tenant_id, self.source_id));
            crash::at(Point::ForgetBeforeCommit)?;
            effect.commit().await?;
        }
        let mut effect = lease.begin(env).await?;
        let at = env.clock.sql();
        forgotten::remove_source(&mut effect, at, tenant_id, self.source_id, self.forgotten_id).await?;
        effect.notify(sources::changed(tenant_id, self.source_id));
        effect.commit().await
    }
}
