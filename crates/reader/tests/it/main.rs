//! Tests of the reader with whole files: those that real programs wrote, and those that are made to do harm.

mod child;
mod faithful;
mod heard;
mod hostile;
mod made;
mod said;
