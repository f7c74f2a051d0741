//! Memory: one way in (`remember`), one way to ask (`recall`), the door for files and notes, and the embedders that both need.

mod budget;
pub mod door;
pub mod embed;
pub mod postings;
pub mod recall;
mod remember;

pub(crate) use budget::{Reservation, reserve};
pub use remember::{Batch, Change, Remembered, remember};
