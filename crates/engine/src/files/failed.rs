//! A file that cannot be read for a reason of our own: the last attempt writes it down where people look, at its document.

use domain::reading::Step;
use domain::{DocumentId, DocumentStatus, Fault, Notice, Op};
use store::files;
use store::files::steps::{self, Ended};

use crate::Env;
use crate::work::{Lease, Outcome};

/// Passes an outcome on. Before the last attempt's fault becomes a dead letter, the document says that it failed; when the letter is sent again, it is read again.
pub(crate) async fn told(
    env: &Env,
    lease: &Lease,
    id: DocumentId,
    most_attempts: i32,
    done: Result<Outcome, Fault>,
) -> Result<Outcome, Fault> {
    let is_last = match &done {
        Err(Fault::Transient(_)) => lease.attempt() >= most_attempts,
        Err(Fault::Malformed { .. } | Fault::Refused { .. } | Fault::Reauthorize) => true,
        _ => false,
    };
    if let (true, Err(fault)) = (is_last, &done) {
        let tenant_id = lease.tenant_id()?;
        let mut effect = lease.begin_note(env).await?;
        if let Some(awaited) = files::awaited(&mut effect, tenant_id, id).await?
            && awaited.status.is_under_way()
        {
            let status = DocumentStatus::Failed;
            files::set_status(&mut effect, tenant_id, id, awaited.updated_at, status).await?;
            let error = fault.in_words();
            let ended = Ended { error: Some(&error), ..Ended::default() };
            steps::end(&mut effect, env.clock.sql(), tenant_id, id, Step::Transcribe, &ended).await?;
            effect.notify_all(Notice::documents(tenant_id, &[id.0], Op::Update));
            effect.commit().await?;
        }
    }
    done
}
