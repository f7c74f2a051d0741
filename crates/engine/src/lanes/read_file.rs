//! Reads the files of documents: the text that is stored in them, at once. Pictures and speech are left to lane `recognise`. `memory::remember` sends the items,
//! with the documents that are pending.

use std::time::Duration;

use domain::reading::Step;
use domain::{DocumentId, DocumentStatus, Fault, Notice, Op};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::files::steps::{self, Ended};
use store::files::{self, Awaited};

use crate::Env;
use crate::files::reading::{self, Senses};
use crate::files::{failed, finish};
use crate::work::{Lane, Lease, Outcome};

#[derive(Serialize, Deserialize)]
pub struct ReadFile {
    pub document_id: DocumentId,
}

impl Lane for ReadFile {
    /// The contract's name.
    const NAME: &'static str = "document_queue";
    const MAX_ATTEMPTS: i32 = 5;
    /// One file is read by one process, so that a large one keeps no small one waiting in its batch.
    const BATCH: u32 = 1;

    /// Safe to repeat: pages that are kept stay, and the document is written with the message's end.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let done = read(env, lease, self.document_id, Senses::Text).await;
        failed::told(env, lease, self.document_id, Self::MAX_ATTEMPTS, done).await
    }
}

/// Reads a document's file and writes what came of it.
pub(super) async fn read(env: &Env, lease: &Lease, id: DocumentId, senses: Senses) -> Result<Outcome, Fault> {
    let tenant_id = lease.tenant_id()?;
    let mut conn = env.db.acquire().await?;
    let Some(mut awaited) = files::awaited(&mut conn, tenant_id, id).await? else {
        return Ok(Outcome::Cancel("the document is gone, or has no file"));
    };
    drop(conn);
    if matches!(awaited.status, DocumentStatus::Completed | DocumentStatus::Skipped) {
        return Ok(Outcome::Cancel("its file is read"));
    }
    if !begin(env, lease, &mut awaited, senses).await? {
        return Ok(Outcome::Snooze(Duration::ZERO, "its document changed"));
    }
    let file = reading::read(env, lease, &awaited, senses).await?;
    finish::finish(env, lease, &mut awaited, &file).await
}

/// Says that the file is being read. `false`: the document is not as it was.
async fn begin(env: &Env, lease: &Lease, awaited: &mut Awaited, senses: Senses) -> Result<bool, Fault> {
    let (tenant_id, id, at) = (lease.tenant_id()?, awaited.id, env.clock.sql());
    let mut effect = lease.begin_note(env).await?;
    let status = DocumentStatus::Transcribing;
    let Some(updated_at) = files::set_status(&mut effect, tenant_id, id, awaited.updated_at, status).await? else {
        return Ok(false);
    };
    (awaited.updated_at, awaited.status) = (updated_at, status);
    if senses == Senses::Text {
        // The kind of a file is told by its bytes, so the reader decides: here it is only let in.
        let classified = Ended { outcome: json!({ "verdict": "process" }), done_by: Some("rules"), ..Ended::default() };
        steps::end(&mut effect, at, tenant_id, id, Step::Classify, &classified).await?;
    }
    // Recognising goes on with what the first lane has begun: it is no try of its own.
    if senses == Senses::Text || lease.attempt() > 1 {
        steps::begin(&mut effect, at, tenant_id, id, Step::Transcribe).await?;
    }
    effect.notify_all(Notice::documents(tenant_id, &[id.0], Op::Update));
    effect.commit().await?;
    Ok(true)
}
