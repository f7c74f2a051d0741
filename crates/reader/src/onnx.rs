//! The library that runs models. It is loaded once and stays: a process can have no second one.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ort::environment::Environment;

static RUNTIME: Mutex<Option<Environment>> = Mutex::new(None);

/// Loads the library. The error is a text, because `ort` cannot even make an error of its own without the library.
pub(crate) fn runtime(library: &Path) -> Result<Environment, String> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = &*runtime {
        return Ok(runtime.clone());
    }
    let loaded = ort::init_from(library).map_err(|error| error.to_string())?;
    let made = loaded.with_telemetry(false).build().map_err(|error| error.to_string())?;
    Ok(runtime.insert(made).clone())
}
