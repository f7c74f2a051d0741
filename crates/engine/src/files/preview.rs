//! Pages as they look: drawn by a reader (`child`) when somebody looks at one, and kept for a while.

use std::time::Duration;

use domain::reading::{FileKind, Request};
use domain::{BlobKey, Caller, DocumentId};
use store::files::previews::{self, Picture};
use store::files::{self, File};
use store::memory::documents;
use tokio::sync::Semaphore;

use super::child::{Patience, Reader};
use crate::act::OrMissing as _;
use crate::{ActError, Env};

/// The pages that a process draws at once. Nobody's pages take the processors from everybody's requests.
const AT_ONCE: usize = 2;
static DRAWING: Semaphore = Semaphore::const_new(AT_ONCE);
/// The time that drawing a page may take, and waiting until it is begun.
const MOST_TIME: Duration = Duration::from_secs(12);
const MOST_WAITING: Duration = Duration::from_secs(12);

/// Whether there may be a picture of a page of this file.
pub fn is_drawable(file: &File, page: i32) -> bool {
    matches!(file.kind(), Some(FileKind::Pdf | FileKind::Image)) && (1..=file.n_pages.unwrap_or(0)).contains(&page)
}

/// The picture of a page of a document's file, as a JPEG.
pub async fn preview(env: &Env, caller: &Caller, id: DocumentId, page: i32) -> Result<Vec<u8>, ActError> {
    let Some(key) = drawable(env, caller, id, page).await? else { return Err(ActError::NotFound("picture")) };
    if let Some(drawn) = kept(env, caller, &key, page).await? {
        return drawn.or_missing("picture");
    }
    let waited = tokio::time::timeout(MOST_WAITING, DRAWING.acquire()).await;
    let Ok(Ok(_turn)) = waited else { return Err(ActError::conflict("other pages are being drawn; try again")) };
    // Somebody may have drawn it meanwhile.
    if let Some(drawn) = kept(env, caller, &key, page).await? {
        return drawn.or_missing("picture");
    }
    let drawn = draw(env, caller, &key, page).await?;
    let name = key.to_string();
    env.db.write(async |tx| previews::keep(tx, caller.tenant_id, &name, page, drawn.as_deref()).await).await?;
    drawn.or_missing("picture")
}

/// The file of one of the caller's documents, if there may be a picture of this page.
async fn drawable(env: &Env, caller: &Caller, id: DocumentId, page: i32) -> Result<Option<BlobKey>, ActError> {
    let loaded = env.db.read(caller, async |tx| {
        let Some(document) = documents::get(tx, id.0).await? else { return Ok(None) };
        let key = document.blob_key.filter(|_| document.deleted_at.is_none()).unwrap_or_default();
        let file = files::get(tx, caller.tenant_id, &key).await?;
        Ok(Some(file.filter(|file| is_drawable(file, page)).and_then(|_| key.parse().ok())))
    });
    loaded.await?.or_missing("document")
}

async fn kept(env: &Env, caller: &Caller, key: &BlobKey, page: i32) -> Result<Option<Picture>, ActError> {
    let key = key.to_string();
    Ok(env.db.read(caller, async |tx| previews::get(tx, caller.tenant_id, &key, page).await).await?)
}

async fn draw(env: &Env, caller: &Caller, key: &BlobKey, page: i32) -> Result<Picture, ActError> {
    let found = env.blobs.get_stream(caller.tenant_id, key).await.map_err(ActError::Failed)?;
    let Some((size, bytes)) = found.filter(|(size, _)| *size <= env.config.file_max_bytes) else { return Ok(None) };
    let request = Request { bytes: Some(size), draw: u32::try_from(page).ok(), ..Request::default() };
    let patience = Patience { silent: MOST_TIME, total: MOST_TIME };
    let mut reader =
        Reader::start(env.config.reader_program.as_deref(), &request, patience, bytes).map_err(ActError::Failed)?;
    reader.picture().await.map_err(ActError::Failed)
}
