//! Processing of activities: transcription, then summary and facts by a language model or by rules.

mod model;
mod processors;
pub mod rules;

pub(crate) use processors::language_model;
pub use processors::{Failure, Processors, Subject, source_types};
