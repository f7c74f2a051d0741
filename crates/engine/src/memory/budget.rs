//! The cap on what a tenant's vectors cost in a month. A paid call reserves first; what it did cost is written with what it made.

use domain::{Fault, TenantId};
use store::spend::{self, Room};
use uuid::Uuid;

use crate::Env;

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reservation {
    /// It costs nothing, or there is no cap.
    Free,
    Held(Uuid),
    /// Not while others' calls are under way.
    Busy,
    /// Not this month.
    Spent,
}

/// Sets money aside for vectors of so many bytes of text.
pub(crate) async fn reserve(env: &Env, tenant_id: TenantId, bytes: usize) -> Result<Reservation, Fault> {
    let (_, micros) = env.embedder.estimate(bytes);
    let Some(cap) = env.config.embed_cap_micros().filter(|_| micros > 0) else { return Ok(Reservation::Free) };
    let id = Uuid::now_v7();
    let mut conn = env.db.acquire().await?;
    Ok(match spend::reserve(&mut conn, env.clock.sql(), tenant_id, id, micros, cap).await? {
        Room::Reserved => Reservation::Held(id),
        Room::Busy => Reservation::Busy,
        Room::Spent => Reservation::Spent,
    })
}
