//! Blobs: files and large bodies, as objects `{tenant}/{sha256}` in a folder or in S3. A file's own name is only metadata.
//!
//! The row in `tributary.blobs` is written first, then the bytes, then the caller's row that refers to them. So after a crash at any point
//! each object has a row by which the collector finds it, and no row refers to an object that is missing.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use domain::{BlobKey, Clock, Fault, TenantId};
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Name;
use object_store::{Error, GetOptions, ObjectStore, ObjectStoreExt as _, PutPayload, WriteMultipart};
use sha2::{Digest as _, Sha256};
use store::PgConnection;
use store::crash::{self, Point};

use crate::spool::Spooled;
use crate::{Config, Env};

/// The smallest part of an upload that S3 takes.
const PART_BYTES: usize = 5 << 20;

/// The blob store. Clones share it.
#[derive(Clone)]
pub struct Blobs {
    backend: Backend,
    clock: Clock,
}

/// Where the objects are.
#[derive(Clone)]
enum Backend {
    /// Created with the first blob: commands that only read leave no folder behind.
    Folder(PathBuf),
    Bucket {
        store: Arc<dyn ObjectStore>,
        prefix: Name,
    },
}

/// The result of `copy_all`. A damaged object is one whose bytes do not match its name; it is left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub objects: u64,
    pub bytes: u64,
    pub damaged: Vec<String>,
}

/// A blob as an object: the store, and its name there.
type Object = (Arc<dyn ObjectStore>, Name);

impl Blobs {
    /// Opens the store that `BLOB_URL` names, else the folder `blobs` of the data folder. Nothing is read or written yet.
    pub fn open(config: &Config, clock: Clock) -> anyhow::Result<Self> {
        let backend = match config.blob_url.as_deref() {
            None => Backend::Folder(config.data_dir.join("blobs")),
            Some(url) => match (url.strip_prefix("file://"), url.strip_prefix("s3://")) {
                (Some(path), _) => Backend::Folder(path.into()),
                (_, Some(bucket)) => bucket_of(bucket, std::env::vars_os().filter_map(as_text))?,
                _ => return Err(anyhow!("BLOB_URL must be file:///… or s3://bucket/prefix")),
            },
        };
        Ok(Self { backend, clock })
    }

    /// A folder of blobs elsewhere, such as in a backup.
    pub fn in_folder(path: &Path) -> Self {
        Self { backend: Backend::Folder(path.to_owned()), clock: Clock::System }
    }

    /// `bucket/prefix` with the AWS_* variables given, instead of this process's own.
    pub fn in_bucket(bucket: &str, variables: &[(&str, &str)], clock: Clock) -> anyhow::Result<Self> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Ok(Self { backend: bucket_of(bucket, variables)?, clock })
    }

    /// Stores the bytes for at least a day, and for as long as a row refers to the key. Best on a connection outside a transaction: others
    /// who put the same bytes wait for it to end, and writing them takes a while. Safe to repeat.
    pub async fn put(&self, conn: &mut PgConnection, tenant_id: TenantId, bytes: Bytes) -> Result<BlobKey, Fault> {
        let (key, size) = (BlobKey::of_hash(Sha256::digest(&bytes).into()), bytes.len() as u64);
        store::blobs::touch(conn, self.clock.sql(), tenant_id, &key, size).await?;
        crash::at(Point::BlobRowWritten)?;
        self.write(tenant_id, &key, bytes).await?;
        crash::at(Point::BlobBytesWritten)?;
        Ok(key)
    }

    /// Stores a file, of which only a little is in memory at a time.
    pub async fn put_file(
        &self,
        conn: &mut PgConnection,
        tenant_id: TenantId,
        file: &Spooled,
    ) -> Result<BlobKey, Fault> {
        let key = file.key();
        store::blobs::touch(conn, self.clock.sql(), tenant_id, &key, file.bytes).await?;
        crash::at(Point::BlobRowWritten)?;
        if let Some((store, name)) = self.writing(tenant_id, &key, file.bytes).await? {
            write_file(&*store, &name, file).await?;
        }
        crash::at(Point::BlobBytesWritten)?;
        Ok(key)
    }

    /// Reads a whole blob; none when it is missing. Bytes that do not match their name are an error.
    pub async fn get(&self, tenant_id: TenantId, key: &BlobKey) -> Result<Option<Bytes>, Fault> {
        let Some((store, name)) = self.reading(tenant_id, key)? else { return Ok(None) };
        let bytes = match store.get(&name).await {
            Ok(found) => found.bytes().await.map_err(|error| failed("read", error))?,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed("read", error)),
        };
        if BlobKey::of_hash(Sha256::digest(&bytes).into()) != *key {
            return Err(Fault::Malformed { what: format!("blob {tenant_id}/{key} is damaged") });
        }
        Ok(Some(bytes))
    }

    /// The size of a blob and a stream of its bytes, to be passed on.
    pub async fn get_stream(
        &self,
        tenant_id: TenantId,
        key: &BlobKey,
    ) -> Result<Option<(u64, impl Stream<Item = Result<Bytes, Fault>> + Send + use<>)>, Fault> {
        let Some((store, name)) = self.reading(tenant_id, key)? else { return Ok(None) };
        match store.get(&name).await {
            Ok(found) => Ok(Some((found.meta.size, found.into_stream().map_err(|error| failed("read", error))))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("read", error)),
        }
    }

    /// Reads a part of a blob, which must be within its size.
    pub async fn get_part(
        &self,
        tenant_id: TenantId,
        key: &BlobKey,
        part: Range<u64>,
    ) -> Result<Option<impl Stream<Item = Result<Bytes, Fault>> + Send + use<>>, Fault> {
        let Some((store, name)) = self.reading(tenant_id, key)? else { return Ok(None) };
        match store.get_opts(&name, GetOptions { range: Some(part.into()), ..GetOptions::default() }).await {
            Ok(found) => Ok(Some(found.into_stream().map_err(|error| failed("read", error)))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("read", error)),
        }
    }

    /// Copies every blob to another store. Other files, such as half a file that a crash left, are skipped.
    pub async fn copy_all(&self, to: &Self) -> Result<Copied, Fault> {
        let names: Vec<(TenantId, BlobKey)> = self.list().await?;
        let copies = names.into_iter().map(|(tenant_id, key)| async move {
            match self.get(tenant_id, &key).await {
                Ok(Some(bytes)) => {
                    let size = bytes.len() as u64;
                    to.write(tenant_id, &key, bytes).await.map(|()| Copied { objects: 1, bytes: size, damaged: vec![] })
                }
                Ok(None) => Ok(Copied::default()), // removed since it was listed
                Err(Fault::Malformed { .. }) => {
                    Ok(Copied { damaged: vec![format!("{tenant_id}/{key}")], ..Copied::default() })
                }
                Err(fault) => Err(fault),
            }
        });
        let add = |mut sum: Copied, one: Copied| async move {
            sum.objects += one.objects;
            sum.bytes += one.bytes;
            sum.damaged.extend(one.damaged);
            Ok(sum)
        };
        stream::iter(copies).buffer_unordered(4).try_fold(Copied::default(), add).await
    }

    async fn list(&self) -> Result<Vec<(TenantId, BlobKey)>, Fault> {
        let (store, prefix) = match &self.backend {
            Backend::Folder(path) if !path.exists() => return Ok(Vec::new()),
            Backend::Folder(path) => (folder(path)?, Name::default()),
            Backend::Bucket { store, prefix } => (store.clone(), prefix.clone()),
        };
        let found: Vec<_> = store.list(Some(&prefix)).try_collect().await.map_err(|error| failed("list", error))?;
        Ok(found.iter().filter_map(|object| parse(&prefix, &object.location)).collect())
    }

    /// Writes and syncs the object, unless it is there already.
    async fn write(&self, tenant_id: TenantId, key: &BlobKey, bytes: Bytes) -> Result<(), Fault> {
        let Some((store, name)) = self.writing(tenant_id, key, bytes.len() as u64).await? else { return Ok(()) };
        store.put(&name, PutPayload::from_bytes(bytes)).await.map(|_| ()).map_err(|error| failed("write", error))
    }

    /// The object to write; none when it is there already.
    async fn writing(&self, tenant_id: TenantId, key: &BlobKey, bytes: u64) -> Result<Option<Object>, Fault> {
        let (store, name) = match &self.backend {
            Backend::Folder(path) => {
                let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
                made.map_err(|error| {
                    let what = format!("the folder {} cannot be made", path.display());
                    Fault::Transient(anyhow::Error::new(error).context(what))
                })?;
                (folder(path)?, name(&Name::default(), tenant_id, key))
            }
            Backend::Bucket { store, prefix } => (store.clone(), name(prefix, tenant_id, key)),
        };
        match store.head(&name).await {
            Ok(found) if found.size == bytes => Ok(None),
            Ok(_) | Err(Error::NotFound { .. }) => Ok(Some((store, name))),
            Err(error) => Err(failed("look up", error)),
        }
    }

    async fn remove(&self, tenant_id: TenantId, key: &BlobKey) -> Result<(), Fault> {
        let Some((store, name)) = self.reading(tenant_id, key)? else { return Ok(()) };
        match store.delete(&name).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("remove", error)),
        }
    }

    /// The object to read. None: there is no folder, so no blob.
    fn reading(&self, tenant_id: TenantId, key: &BlobKey) -> Result<Option<Object>, Fault> {
        Ok(match &self.backend {
            Backend::Folder(path) if !path.exists() => None,
            Backend::Folder(path) => Some((folder(path)?, name(&Name::default(), tenant_id, key))),
            Backend::Bucket { store, prefix } => Some((store.clone(), name(prefix, tenant_id, key))),
        })
    }
}

/// Writes a file as an object. It appears as a whole, once its last part is written.
async fn write_file(store: &dyn ObjectStore, name: &Name, file: &Spooled) -> Result<(), Fault> {
    let unread =
        |error: std::io::Error| Fault::Transient(anyhow::Error::new(error).context("a file could not be read"));
    let mut pieces = pin!(file.pieces());
    if file.bytes <= PART_BYTES as u64 {
        let pieces: Vec<Bytes> = pieces.try_collect().await.map_err(unread)?;
        return store
            .put(name, PutPayload::from_iter(pieces))
            .await
            .map(|_| ())
            .map_err(|error| failed("write", error));
    }
    let upload = store.put_multipart(name).await.map_err(|error| failed("write", error))?;
    let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => upload.put(piece),
            Err(error) => {
                let _ = upload.abort().await;
                return Err(unread(error));
            }
        }
        upload.wait_for_capacity(1).await.map_err(|error| failed("write", error))?;
    }
    upload.finish().await.map(|_| ()).map_err(|error| failed("write", error))
}

/// Removes blobs that no row refers to and nobody has touched for a day, unless a backup is being made. The object is removed while its row
/// is locked, so that a caller who puts the same bytes again waits, and then writes them anew. A crash in between leaves the row for the
/// next round.
pub async fn collect(env: &Env) -> Result<(), Fault> {
    let (mut after, mut n_removed) = (None, 0);
    loop {
        let mut conn = env.db.acquire().await?;
        let unnamed = store::blobs::unnamed(&mut conn, env.clock.sql(), after, 500).await?;
        drop(conn);
        for (tenant_id, key) in &unnamed {
            let mut tx = env.db.begin().await?;
            if !store::blobs::may_remove(&mut tx).await? {
                return Ok(()); // the next round comes within the hour
            }
            if store::blobs::remove_unnamed(&mut tx, env.clock.sql(), *tenant_id, key).await? {
                env.blobs.remove(*tenant_id, key).await?;
                n_removed += 1;
            }
            tx.commit().await?;
        }
        match unnamed.last() {
            Some(last) => after = Some(*last),
            None => break,
        }
    }
    if n_removed > 0 {
        tracing::info!(n_removed, "removed {n_removed} blobs that nothing names");
    }
    Ok(())
}

fn as_text((name, value): (OsString, OsString)) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}

fn bucket_of(bucket: &str, variables: impl Iterator<Item = (String, String)>) -> anyhow::Result<Backend> {
    let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
    connectors::install_tls();
    // We remove one object at a time, and not every provider knows how to remove many.
    let mut builder = AmazonS3Builder::new().with_disable_bulk_delete(true);
    for (name, value) in variables.filter(|(name, _)| name.starts_with("AWS_")) {
        if let Ok(setting) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(setting, value);
        }
    }
    let store = builder.with_bucket_name(bucket).build();
    let store = store.context("the bucket of BLOB_URL cannot be used; check the AWS_* variables")?;
    Ok(Backend::Bucket { store: Arc::new(store), prefix: Name::from(prefix) })
}

fn folder(path: &Path) -> Result<Arc<dyn ObjectStore>, Fault> {
    let store = LocalFileSystem::new_with_prefix(path).map_err(|error| failed("open", error))?;
    Ok(Arc::new(store.with_fsync(true)))
}

/// The name of a blob's object. It is made of an id and a hash, so it cannot lead elsewhere.
fn name(prefix: &Name, tenant_id: TenantId, key: &BlobKey) -> Name {
    prefix.clone().join(tenant_id.to_string()).join(key.to_string())
}

fn parse(prefix: &Name, location: &Name) -> Option<(TenantId, BlobKey)> {
    let mut parts = location.prefix_match(prefix)?;
    let (tenant_id, key) = (parts.next()?, parts.next()?);
    let found = (tenant_id.as_ref().parse().ok()?, key.as_ref().parse().ok()?);
    (parts.next().is_none() && name(prefix, found.0, &found.1) == *location).then_some(found)
}

fn failed(doing: &str, error: Error) -> Fault {
    Fault::Transient(anyhow::Error::new(error).context(format!("the blob store could not {doing}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_others_are_passed_over() {
        let (tenant_id, key) = (TenantId::new(), BlobKey::of_hash(Sha256::digest("x").into()));
        for prefix in [Name::default(), Name::from("a/b")] {
            assert_eq!(parse(&prefix, &name(&prefix, tenant_id, &key)), Some((tenant_id, key)));
            for other in ["readme".into(), format!("{tenant_id}/{key}#1"), format!("{tenant_id}/{key}/x")] {
                let location = Name::from_iter(prefix.parts().chain(Name::from(other).parts()));
                assert_eq!(parse(&prefix, &location), None, "{location}");
            }
        }
    }
}
