//! What is made of an activity beside finding it again: heard by a transcriber, summed up by a language model, or by rules.

mod model;
mod processors;
pub mod rules;

pub use processors::{Failure, Processors, Subject, source_types};
