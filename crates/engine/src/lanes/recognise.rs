//! Recognises letters in the pictures and scans of a file, and speech in recordings that are files. It takes seconds a page, so it has a lane of its own, one
//! file at a time, and its processes have the lowest priority.

use std::time::Duration;

use domain::{DocumentId, Fault};
use serde::{Deserialize, Serialize};

use super::read_file::read;
use crate::Env;
use crate::files::failed;
use crate::files::reading::{self, Senses};
use crate::work::{Lane, Lease, Outcome};

/// How long a worker leaves an item alone for which it has no models: another one may have them.
const NOT_HERE: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
pub struct Recognise {
    pub document_id: DocumentId,
}

impl Lane for Recognise {
    const NAME: &'static str = "recognise";
    const MAX_ATTEMPTS: i32 = 5;
    const IS_LONG: bool = true;
    const SLOTS: Option<u32> = Some(1);
    const MAX_RUN: Duration = Duration::from_secs(7 * 3_600);

    /// Safe to repeat: a page that is recognised is kept, and is not recognised again.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        if reading::models(&env.config).onnxruntime.is_none() {
            return Ok(Outcome::Snooze(
                NOT_HERE,
                "the settings of this worker name no models that recognise letters or speech",
            ));
        }
        let done = read(env, lease, self.document_id, Senses::All).await;
        failed::told(env, lease, self.document_id, Self::MAX_ATTEMPTS, done).await
    }
}
