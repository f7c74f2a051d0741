//! Processing of activities: transcription, then summary and facts by a language model or by rules.

mod model;
mod processors;
pub mod rules;

pub use processors::{Failure, Processors, Subject, source_types};
