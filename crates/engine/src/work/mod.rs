//! The one way to do background work: a lane is a queue plus the code that handles its items; one runtime drives them all.

mod batch;
mod counters;
pub mod lane;
mod lease;
pub mod runtime;
mod scheduler;
mod tracking;

pub use lane::{Lane, LaneEntry, Outcome};
pub use lease::{Effect, Lease};
pub(crate) use runtime::DB_LIMIT;
pub use runtime::{Runtime, Stop};
