//! The cap on the cost of a tenant's vectors in a month. A paid call reserves first; its real cost is written with its vectors. A service that makes
//! nothing until a person has paid it, or has corrected its key, is left alone for a while by all processes.

use std::time::Duration;

use domain::{Fault, TenantId};
use store::gates;
use store::spend::{self, Room};
use uuid::Uuid;

use super::embed::{Embedded, Embedder};
use crate::Env;

/// Whether a paid call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reservation {
    /// The call costs nothing, or there is no cap.
    Free,
    Held(Uuid),
    /// Not now: calls under way may use up what is left of the month's money.
    Busy,
    /// Not this month: its money is spent.
    Spent,
}

/// The time that a blocked service is left alone.
const BLOCKED: Duration = Duration::from_secs(600);

/// Reserves the cost of embedding so many bytes of text. [`Fault::Blocked`]: the service was found to be blocked a short time ago.
pub(crate) async fn reserve(
    env: &Env,
    embedder: &Embedder,
    tenant_id: TenantId,
    bytes: usize,
) -> Result<Reservation, Fault> {
    if embedder.is_service() {
        let mut conn = env.db.acquire().await?;
        let closed = gates::closed(&mut conn, env.clock.sql(), &[&gate(embedder)]).await?;
        if let Some(closed) = closed.into_iter().next() {
            return Err(Fault::Blocked { what: closed.reason });
        }
    }
    let (_, micros) = embedder.estimate(bytes);
    let Some(cap) = env.config.embed_cap_micros().filter(|_| micros > 0) else { return Ok(Reservation::Free) };
    let id = Uuid::now_v7();
    let mut conn = env.db.acquire().await?;
    Ok(match spend::reserve(&mut conn, env.clock.sql(), tenant_id, id, micros, cap).await? {
        Room::Reserved => Reservation::Held(id),
        Room::Busy => Reservation::Busy,
        Room::Spent => Reservation::Spent,
    })
}

/// Remembers whether the service is blocked, for all processes. Its first answer ends that.
pub(crate) async fn told(env: &Env, embedder: &Embedder, answered: &Result<Embedded, Fault>) {
    let fault = match answered {
        Ok(embedded) => embedded.fault.as_ref(),
        Err(fault) => Some(fault),
    };
    if !embedder.is_service() || fault.is_some_and(|fault| !matches!(fault, Fault::Blocked { .. })) {
        return;
    }
    let (at, key) = (env.clock.sql(), gate(embedder));
    let noted = env.db.session(async |conn| match fault {
        Some(Fault::Blocked { what }) => gates::close(conn, at, &key, BLOCKED, what).await,
        _ => gates::worked(conn, &[&key]).await,
    });
    if let Err(error) = noted.await {
        tracing::warn!(error = ?error, "it could not be written down whether the embedder is blocked");
    }
}

/// The name of an embedder's gate.
pub(crate) fn gate(embedder: &Embedder) -> String {
    format!("embedder:{}", embedder.model().name)
}
