//! Processing of activities: transcription, then summary and facts by a language model or by rules.

mod hearing;
mod model;
mod processors;
pub mod rules;

pub use hearing::{Hearing, SURE};
pub(crate) use processors::language_model;
pub use processors::{Failure, Processors, Subject, source_types};
