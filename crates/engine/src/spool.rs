//! Bytes that are too many for memory, in a file without a name: when they are dropped they are gone, and so they are after a crash.

use std::io::SeekFrom;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use domain::BlobKey;
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use uuid::Uuid;

/// A file that is being written.
pub struct Spool {
    file: File,
    bytes: u64,
    sha256: Sha256,
}

/// A file that is complete.
pub struct Spooled {
    file: File,
    pub bytes: u64,
    pub sha256: [u8; 32],
}

impl Spool {
    /// In the data folder, not in the system's own for such files: that one may lie in memory.
    pub async fn new(data_dir: &Path) -> std::io::Result<Self> {
        let folder = data_dir.join("spool");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let path = folder.join(Uuid::now_v7().to_string());
        let file = File::options().read(true).write(true).create_new(true).open(&path).await?;
        tokio::fs::remove_file(&path).await?;
        Ok(Self { file, bytes: 0, sha256: Sha256::new() })
    }

    pub async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.sha256.update(bytes);
        self.file.write_all(bytes).await
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub async fn finish(mut self) -> std::io::Result<Spooled> {
        self.file.flush().await?;
        Ok(Spooled { file: self.file, bytes: self.bytes, sha256: self.sha256.finalize().into() })
    }
}

impl Spooled {
    pub fn key(&self) -> BlobKey {
        BlobKey::of_hash(self.sha256)
    }

    /// From the beginning, whoever read it before.
    pub async fn rewind(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0)).await.map(|_| ())
    }

    /// The next piece, of `most` bytes or less; empty at the end.
    pub async fn read(&mut self, most: usize) -> std::io::Result<Vec<u8>> {
        let mut piece = Vec::with_capacity(most);
        (&mut self.file).take(most as u64).read_to_end(&mut piece).await?;
        Ok(piece)
    }
}
