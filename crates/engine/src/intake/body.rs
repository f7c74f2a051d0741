//! A body: while it arrives, when it is complete, and stored beside its row.

use std::time::Duration;

use bytes::Bytes;
use domain::{BlobKey, TenantId};
use sha2::{Digest as _, Sha256};
use store::activities::{Attachment, Original};

use super::BODY_BYTES;
use super::delivery::INLINE_BYTES;
use super::large::{LargeInFiles, LargeOnDisk};
use super::normalise::{Content, File};
use crate::Env;
use crate::spool::Spooled;

/// A body while it arrives. Most come in one piece, which is not copied.
pub(super) enum Body {
    Empty,
    One(Bytes),
    Many(Vec<u8>),
    Large(Box<LargeInFiles>),
}

impl Body {
    /// Adds a piece. It takes no more than twice the memory of what has arrived, and no more than `most`, the length that was announced.
    pub fn add(&mut self, piece: Bytes, most: usize) {
        *self = match std::mem::replace(self, Self::Empty) {
            Self::Empty => Self::One(piece),
            Self::One(first) => Self::Many(added(first.to_vec(), &piece, most)),
            Self::Many(all) => Self::Many(added(all, &piece, most)),
            large @ Self::Large(_) => large,
        };
    }

    /// Bytes in memory.
    pub fn held(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(piece) => piece.len(),
            Self::Many(all) => all.capacity(),
            Self::Large(files) => files.held(),
        }
    }
}

fn added(mut all: Vec<u8>, piece: &[u8], most: usize) -> Vec<u8> {
    let bytes = all.len() + piece.len();
    if bytes > all.capacity() {
        all.reserve_exact((2 * bytes).min(most.max(bytes)) - all.len());
    }
    all.extend_from_slice(piece);
    all
}

/// A complete body: as it was sent, or the rest of a large one whose files are on disk.
pub(super) struct Whole {
    pub body: Bytes,
    pub large: Option<LargeOnDisk>,
}

impl Whole {
    /// Its length as it was sent.
    pub fn bytes(&self) -> usize {
        self.large.as_ref().map_or(self.body.len(), |large| usize::try_from(large.original.bytes).unwrap_or(usize::MAX))
    }

    /// Its hash as it was sent.
    pub fn sha256(&self) -> [u8; 32] {
        self.large.as_ref().map_or_else(|| Sha256::digest(&self.body).into(), |large| large.original.sha256)
    }
}

/// Runs work on a body. For a large one the other tasks of this thread move to another.
pub(super) fn apart<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > BODY_BYTES { tokio::task::block_in_place(work) } else { work() }
}

/// Stores the original of a large event, and its files.
pub(super) async fn keep_all(
    env: &Env,
    tenant_id: TenantId,
    mut whole: Whole,
    files: Vec<File>,
) -> (Original, Vec<Attachment>) {
    let mut attachments = Vec::new();
    for file in files {
        let content = match file.content {
            Content::Lifted(nth) => {
                whole.large.as_mut().and_then(|large| large.files.get_mut(nth)?.take()).map(Kept::File)
            }
            content => apart(whole.body.len(), || content.bytes()).map(Kept::Bytes),
        };
        // Content that is no base64 is in the original as it was sent.
        let Some(content) = content else { continue };
        let plain = |text: String, most: usize| text.chars().filter(|c| *c != '\0').take(most).collect::<String>();
        attachments.push(Attachment {
            name: plain(file.name, 255),
            content_type: file.content_type.map(|text| plain(text, 255)),
            content_id: file.content_id.map(|text| plain(text, 255)),
            bytes: content.len(),
            blob_key: keep(env, tenant_id, &content).await.to_string(),
        });
    }
    let original = match whole {
        Whole { large: Some(LargeOnDisk { original, .. }), .. } => {
            Original::Blob(keep(env, tenant_id, &Kept::File(original)).await)
        }
        Whole { body, .. } if body.len() <= INLINE_BYTES => Original::Body(body),
        Whole { body, .. } => Original::Blob(keep(env, tenant_id, &Kept::Bytes(body)).await),
    };
    (original, attachments)
}

/// Content to be stored: in memory, or in a file.
enum Kept {
    Bytes(Bytes),
    File(Spooled),
}

impl Kept {
    fn len(&self) -> i64 {
        match self {
            Self::Bytes(bytes) => i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            Self::File(file) => i64::try_from(file.bytes).unwrap_or(i64::MAX),
        }
    }
}

/// Stores content, trying again until the caller gives up.
async fn keep(env: &Env, tenant_id: TenantId, content: &Kept) -> BlobKey {
    loop {
        let put = match content {
            Kept::Bytes(bytes) => env.blobs.put(&env.db, tenant_id, bytes.clone()).await,
            Kept::File(file) => env.blobs.put_file(&env.db, tenant_id, file).await,
        };
        match put {
            Ok(key) => return key,
            Err(fault) => {
                tracing::warn!(error = ?fault, tenant.id = %tenant_id, "an event's file is not kept yet");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}
