//! The frame of all background work. A lane is a queue plus the code that handles its items; one runtime drives every lane it is
//! given, and fires the schedules it is given. The frame does not know which lanes there are: `crate::lanes` has the list.

mod batch;
mod counters;
pub mod lane;
mod lease;
mod life;
pub mod runtime;
mod scheduler;
mod slots;
mod tracking;

pub use lane::{Lane, LaneEntry, Outcome};
pub use lease::{Effect, Lease};
pub(crate) use runtime::DB_LIMIT;
pub use runtime::{Registered, Runtime, Stop};
pub use scheduler::{Schedule, UPKEEP};
pub use slots::Slots;
