//! Temporary files without a name, for bodies that are too large for memory. They disappear when they are dropped, and after a crash.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use domain::BlobKey;
use futures_util::stream::{self, Stream};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;
use uuid::Uuid;

const PIECE_BYTES: u64 = 256 << 10;

/// A file that is being written.
pub struct Spool {
    file: tokio::fs::File,
    bytes: u64,
    sha256: Sha256,
}

/// A file that is complete.
pub struct Spooled {
    file: Arc<File>,
    pub bytes: u64,
    pub sha256: [u8; 32],
}

impl Spool {
    /// Creates the file in the data folder. The system's folder for temporary files may be in memory.
    pub async fn new(data_dir: &Path) -> io::Result<Self> {
        let folder = data_dir.join("spool");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let path = folder.join(Uuid::now_v7().to_string());
        let file = tokio::fs::File::options().read(true).write(true).create_new(true).open(&path).await?;
        tokio::fs::remove_file(&path).await?;
        Ok(Self { file, bytes: 0, sha256: Sha256::new() })
    }

    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.sha256.update(bytes);
        self.file.write_all(bytes).await
    }

    pub async fn finish(mut self) -> io::Result<Spooled> {
        self.file.flush().await?;
        let file = Arc::new(self.file.into_std().await);
        Ok(Spooled { file, bytes: self.bytes, sha256: self.sha256.finalize().into() })
    }
}

impl Spooled {
    pub fn key(&self) -> BlobKey {
        BlobKey::of_hash(self.sha256)
    }

    /// Reads the whole file from the beginning. Any number of readers can do so at once.
    pub fn pieces(&self) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let (file, bytes) = (self.file.clone(), self.bytes);
        stream::try_unfold(0, move |at: u64| {
            let file = file.clone();
            async move {
                if at == bytes {
                    return Ok(None);
                }
                let next = bytes.min(at + PIECE_BYTES);
                let mut piece = vec![0; usize::try_from(next - at).unwrap_or(0)];
                let read = tokio::task::spawn_blocking(move || file.read_exact_at(&mut piece, at).map(|()| piece));
                Ok(Some((Bytes::from(read.await.map_err(io::Error::other)??), next)))
            }
        })
    }
}
