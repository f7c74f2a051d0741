//! Memory: one way in (`remember`), one way to search (`recall`), answers to questions (`answer`), the door for files and notes, and the embedders that both need.

pub mod answer;
mod budget;
pub mod codes;
pub mod door;
pub mod embed;
pub mod languages;
pub mod moves;
pub mod postings;
pub mod recall;
mod remember;

pub(crate) use budget::{Reservation, gate, reserve, told};
pub use remember::{Batch, Change, Remembered, remember};
