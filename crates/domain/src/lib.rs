//! Types and rules of Tributary that need no I/O: ids, the clock, secrets, callers, faults and what a lane does about them.

pub mod caller;
pub mod clock;
pub mod fault;
pub mod ids;
pub mod item;
pub mod notice;
pub mod secret;

pub use caller::{Caller, Scope};
pub use clock::Clock;
pub use fault::{Fault, Verdict};
pub use ids::{KeyId, ParkedId, PersonId, TenantId, WorkerId};
pub use item::{ItemId, ItemState};
pub use notice::{Notice, Op};
pub use secret::Secret;
