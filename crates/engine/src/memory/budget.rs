//! The cap on the cost of a tenant's vectors in a month. A paid call reserves first; its real cost is written with its vectors.

use domain::{Fault, TenantId};
use store::spend::{self, Room};
use uuid::Uuid;

use super::embed::Embedder;
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

/// Reserves the cost of embedding so many bytes of text.
pub(crate) async fn reserve(
    env: &Env,
    embedder: &Embedder,
    tenant_id: TenantId,
    bytes: usize,
) -> Result<Reservation, Fault> {
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
