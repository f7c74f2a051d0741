//! Memory: one way in (`remember`), one way to ask (`recall`), and the door for files and notes.

pub mod door;
pub mod embed;
pub mod recall;
mod remember;

pub use remember::{Change, Remembered, remember};
