//! Recordings of calls: fetched once from the URL in the event, then stored, for agents and for people to hear.

use std::io;
use std::path::Path;
use std::pin::pin;

use bytes::Bytes;
use connectors::outside::{Basic, FetchError};
use domain::{ActivityId, BlobKey, ChannelId, Fault, TenantId, audio};
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use store::activities::{self, Activity};
use store::channels;
pub use store::recordings::Recording;

use crate::Env;
use crate::intake::providers::UnknownProvider;
use crate::spool::{Spool, Spooled};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the activity has no recording")]
    None,
    #[error("the recording could not be fetched: {0}")]
    NotFetched(#[from] FetchError),
    #[error("the file there is not a recording")]
    NotAudio,
    #[error("the recording is empty")]
    Empty,
    #[error("the recording could not be kept")]
    NotKept(#[from] Fault),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::NotKept(error.into())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::NotKept(Fault::Transient(anyhow::Error::new(error).context("its file on the way could not be used")))
    }
}

/// The recording of an activity, fetched if it is not stored yet. Safe to repeat, and to run twice at once: the first one is stored.
pub async fn open(env: &Env, tenant_id: TenantId, id: ActivityId) -> Result<Recording, Error> {
    let mut conn = env.db.acquire().await?;
    if let Some(kept) = store::recordings::get(&mut conn, tenant_id, id).await? {
        return Ok(kept);
    }
    let activity = activities::get(&mut conn, tenant_id, id).await?.ok_or(Error::None)?;
    let text = |name: &str| activity.raw_data.get(name).and_then(Value::as_str);
    let url = text("content").filter(|_| text("source_type") == Some("url")).ok_or(Error::None)?;
    let basic = credentials(env, &mut conn, tenant_id, &activity).await?;
    drop(conn); // fetching takes a while

    let Audio { file, content_type, .. } = fetch(env, url, basic.as_ref()).await?;
    if file.bytes == 0 {
        return Err(Error::Empty);
    }
    let content_type = content_type.ok_or(Error::NotAudio)?.to_owned();
    let key = env.blobs.put_file(&env.db, tenant_id, &file).await?;
    let mut conn = env.db.acquire().await?;
    let new = Recording { key, bytes: file.bytes, content_type };
    Ok(store::recordings::keep(&mut conn, tenant_id, id, new).await?)
}

/// A stored recording as a file to work on; none when its bytes are gone.
pub async fn audio(env: &Env, tenant_id: TenantId, kept: &Recording) -> Result<Option<Audio>, Error> {
    let Some((_, pieces)) = env.blobs.get_stream(tenant_id, &kept.key).await? else { return Ok(None) };
    Audio::fill(&env.config.data_dir, Some(&kept.content_type), pieces.map_err(Error::from)).await.map(Some)
}

/// Where a recording belongs, so that what is heard of it is kept.
pub struct Place {
    pub env: Env,
    pub tenant_id: TenantId,
    pub activity_id: ActivityId,
    pub key: BlobKey,
}

/// A recording in a file: it may be too large for memory.
pub struct Audio {
    pub file: Spooled,
    /// Its media type; none: it is no recording.
    pub content_type: Option<&'static str>,
    /// None: it is on a device, or on its way.
    pub place: Option<Place>,
}

impl Audio {
    /// Writes a stream to a file. `told` is the media type that its sender claims. The stream must be bounded.
    pub async fn fill<E: From<io::Error>>(
        data_dir: &Path,
        told: Option<&str>,
        pieces: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Self, E> {
        let (mut spool, mut head) = (Spool::new(data_dir).await?, Vec::new());
        let mut pieces = pin!(pieces);
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            head.extend(piece.iter().take(audio::HEAD_BYTES - head.len()));
            spool.write(&piece).await?;
        }
        Ok(Self { file: spool.finish().await?, content_type: audio::kind(told, &head), place: None })
    }
}

async fn fetch(env: &Env, url: &str, basic: Option<&Basic>) -> Result<Audio, Error> {
    let fetched = env.outside.fetch(url, basic).await?;
    let told = fetched.content_type.clone();
    let pieces = stream::try_unfold(fetched, |mut fetched| async move {
        let piece = fetched.next().await?;
        Ok::<_, Error>(piece.map(|piece| (piece, fetched)))
    });
    Audio::fill(&env.config.data_dir, told.as_deref(), pieces).await
}

/// The credentials of the channel's provider, where it keeps recordings behind some.
async fn credentials(
    env: &Env,
    conn: &mut store::PgConnection,
    tenant_id: TenantId,
    activity: &Activity,
) -> Result<Option<Basic>, Error> {
    let Some(channel_id) = activity.channel_id.map(ChannelId) else { return Ok(None) };
    let Some(channel) = channels::get(conn, tenant_id, channel_id).await? else { return Ok(None) };
    let unknown = |error: UnknownProvider| Fault::Transient(anyhow::Error::new(error));
    let spec = env.channel_providers.find(&channel.provider_code).map_err(unknown)?;
    let secrets = channels::secrets(conn, &env.vault, tenant_id, channel_id).await?;
    Ok(secrets.and_then(|secrets| (spec.recording_login)(&activity.metadata, &secrets.proofs)))
}
