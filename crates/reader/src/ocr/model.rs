//! The models' files, as the library runs them.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use domain::reading::Unreadable;
use ort::environment::Environment;
use ort::session::Session;

use crate::Stop;

/// One thread: files are read side by side rather than one file faster. Memory is kept from line to line, in one size for each: to ask for it anew takes a
/// sixth of the time.
pub(crate) fn session(runtime: &Environment, path: &Path) -> ort::Result<Session> {
    let cpu = ort::ep::CPU::default().with_arena_allocator(true).build();
    Session::builder(runtime)?
        .with_intra_threads(1)?
        .with_inter_threads(1)?
        .with_memory_pattern(false)?
        .with_execution_providers([cpu])?
        .commit_from_file(path)
}

/// Stops because a model did not run. That it ran before for others leaves memory as the reason.
pub(crate) fn failed(error: impl Display) -> Stop {
    Stop::Refused(Unreadable::TooMuchMemory, format!("a model did not run: {error}"))
}

/// A file of a model, if it is there.
pub(crate) fn file(folder: &Path, name: &str) -> Option<PathBuf> {
    let path = folder.join(name);
    path.is_file().then_some(path)
}
