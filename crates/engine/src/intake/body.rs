//! A body: while it comes, when it is complete, and put where its row will find it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use domain::{BlobKey, TenantId};
use sha2::{Digest as _, Sha256};
use store::activities::{Attachment, Original};

use super::mail::{Come, Mail};
use super::normalise::{Content, File};
use super::receive::{BODY_BYTES, INLINE_BYTES};
use crate::Env;
use crate::spool::Spooled;

/// Most bodies come in one piece, which is kept as it is.
pub(super) enum Body {
    Empty,
    One(Bytes),
    Many(BytesMut),
    Mail(Box<Mail>),
}

impl Body {
    /// `expected`: how long it will be, if that was said. A large one is not copied as it grows.
    pub fn add(&mut self, piece: Bytes, expected: usize) {
        *self = match std::mem::replace(self, Self::Empty) {
            Self::Empty => Self::One(piece),
            Self::One(first) => {
                let mut both = BytesMut::with_capacity(expected.max(2 * (first.len() + piece.len())));
                both.extend_from_slice(&first);
                both.extend_from_slice(&piece);
                Self::Many(both)
            }
            Self::Many(mut all) => {
                all.extend_from_slice(&piece);
                Self::Many(all)
            }
            mail @ Self::Mail(_) => mail,
        };
    }
}

/// A body that is complete: as it was sent, or what is left of a mail whose files lie elsewhere.
pub(super) struct Whole {
    pub body: Bytes,
    pub mail: Option<Come>,
}

impl Whole {
    /// As it was sent.
    pub fn bytes(&self) -> usize {
        self.mail.as_ref().map_or(self.body.len(), |mail| usize::try_from(mail.original.bytes).unwrap_or(usize::MAX))
    }

    pub fn sha256(&self) -> [u8; 32] {
        self.mail.as_ref().map_or_else(|| Sha256::digest(&self.body).into(), |mail| mail.original.sha256)
    }
}

/// Work that takes a while lets others on this thread go on.
pub(super) fn apart<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > BODY_BYTES { tokio::task::block_in_place(work) } else { work() }
}

/// Puts the original of a large event, and its files, where its row will find them.
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
                whole.mail.as_mut().and_then(|mail| mail.files.get_mut(nth)?.take()).map(Kept::File)
            }
            content => apart(whole.body.len(), || content.bytes()).map(Kept::Bytes),
        };
        // What is no base64 is in the original as it was sent.
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
        Whole { mail: Some(Come { original, .. }), .. } => {
            Original::Blob(keep(env, tenant_id, &Kept::File(original)).await)
        }
        Whole { body, .. } if body.len() <= INLINE_BYTES => Original::Body(body),
        Whole { body, .. } => Original::Blob(keep(env, tenant_id, &Kept::Bytes(body)).await),
    };
    (original, attachments)
}

/// What is to be kept: here, or in a file.
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

/// Trying while the sender waits.
async fn keep(env: &Env, tenant_id: TenantId, content: &Kept) -> BlobKey {
    loop {
        let put = async {
            let mut conn = env.db.acquire().await?;
            match content {
                Kept::Bytes(bytes) => env.blobs.put(&mut conn, tenant_id, bytes.clone()).await,
                Kept::File(file) => env.blobs.put_file(&mut conn, tenant_id, file).await,
            }
        };
        match put.await {
            Ok(key) => return key,
            Err(fault) => {
                tracing::warn!(error = ?fault, tenant.id = %tenant_id, "an event's file is not kept yet");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}
