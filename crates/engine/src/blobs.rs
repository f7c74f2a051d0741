//! Blobs: files and large bodies, as objects `{tenant}/{sha256}` in a folder or in S3. A file's own name is only metadata.
//!
//! An object has a second name, `{sha256}.2`, which fences its removal ([`collect`]).
//!
//! The row in `tributary.blobs` is written first, then the bytes, then the caller's row that refers to them. So after a crash at any point
//! each object has a row by which the collector finds it, and no row refers to an object that is missing.

use std::collections::HashSet;
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
use object_store::{
    Error, GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutPayload, WriteMultipart,
};
use sha2::{Digest as _, Sha256};
use store::Db;
use store::blobs::{Leaving, ObjectName};
use store::crash::{self, Point};

use crate::spool::Spooled;
use crate::{Config, Env};

/// The smallest part of an upload that S3 takes.
const PART_BYTES: usize = 5 << 20;

/// An object, by its tenant, its bytes' hash and which of its names it has.
type Listed = (TenantId, BlobKey, ObjectName);

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

    /// Stores the bytes for at least a day, and for as long as a row refers to the key. Holds a session of the pool for its row alone:
    /// writing the bytes takes as long as the disk or the bucket takes. Safe to repeat.
    pub async fn put(&self, db: &Db, tenant_id: TenantId, bytes: Bytes) -> Result<BlobKey, Fault> {
        let key = BlobKey::of_hash(Sha256::digest(&bytes).into());
        let place = self.write_row(db, tenant_id, &key, bytes.len() as u64).await?;
        self.write(tenant_id, &key, place, bytes).await?;
        crash::at(Point::BlobBytesWritten)?;
        Ok(key)
    }

    /// Keeps a blob for another day, if it is there whole.
    pub async fn keep(&self, db: &Db, tenant_id: TenantId, key: &BlobKey, bytes: u64) -> Result<bool, Fault> {
        let mut conn = db.acquire().await?;
        let is_known = store::blobs::touch_known(&mut conn, self.clock.sql(), tenant_id, key).await?;
        drop(conn);
        Ok(is_known && self.get_stream(tenant_id, key).await?.is_some_and(|(size, _)| size == bytes))
    }

    /// Stores a file, of which only a little is in memory at a time.
    pub async fn put_file(&self, db: &Db, tenant_id: TenantId, file: &Spooled) -> Result<BlobKey, Fault> {
        let key = file.key();
        let place = self.write_row(db, tenant_id, &key, file.bytes).await?;
        if let Some((store, name)) = self.writing(tenant_id, &key, place, file.bytes).await? {
            write_file(&*store, &name, file).await?;
        }
        crash::at(Point::BlobBytesWritten)?;
        Ok(key)
    }

    /// Writes the row by which the collector finds the object, and returns where its bytes go. The session is back in the pool when this returns.
    async fn write_row(&self, db: &Db, tenant_id: TenantId, key: &BlobKey, bytes: u64) -> Result<ObjectName, Fault> {
        let mut conn = db.acquire().await?;
        let place = store::blobs::touch(&mut conn, self.clock.sql(), tenant_id, key, bytes).await?;
        drop(conn);
        crash::at(Point::BlobRowWritten)?;
        Ok(place)
    }

    /// Reads a whole blob; none when it is missing. Bytes that do not match their name are an error.
    pub async fn get(&self, tenant_id: TenantId, key: &BlobKey) -> Result<Option<Bytes>, Fault> {
        let found = self.find(tenant_id, key, GetOptions::default(), &ObjectName::BOTH).await?;
        whole(tenant_id, key, found).await
    }

    /// The size of a blob and a stream of its bytes, to be passed on.
    pub async fn get_stream(
        &self,
        tenant_id: TenantId,
        key: &BlobKey,
    ) -> Result<Option<(u64, impl Stream<Item = Result<Bytes, Fault>> + Send + use<>)>, Fault> {
        let found = self.find(tenant_id, key, GetOptions::default(), &ObjectName::BOTH).await?;
        Ok(found.map(|found| (found.meta.size, found.into_stream().map_err(|error| failed("read", error)))))
    }

    /// Reads a part of a blob, which must be within its size.
    pub async fn get_part(
        &self,
        tenant_id: TenantId,
        key: &BlobKey,
        part: Range<u64>,
    ) -> Result<Option<impl Stream<Item = Result<Bytes, Fault>> + Send + use<>>, Fault> {
        let how = GetOptions { range: Some(part.into()), ..GetOptions::default() };
        let found = self.find(tenant_id, key, how, &ObjectName::BOTH).await?;
        Ok(found.map(|found| found.into_stream().map_err(|error| failed("read", error))))
    }

    /// Opens an object by the first of these names that it has; all have the same bytes.
    async fn find(
        &self,
        tenant_id: TenantId,
        key: &BlobKey,
        how: GetOptions,
        places: &[ObjectName],
    ) -> Result<Option<GetResult>, Fault> {
        for place in places {
            let Some((store, name)) = self.reading(tenant_id, key, *place)? else { continue };
            match store.get_opts(&name, how.clone()).await {
                Ok(found) => return Ok(Some(found)),
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(failed("read", error)),
            }
        }
        Ok(None)
    }

    /// Copies every object to another store, under the name that it has: rows that are restored beside it say which name is in use. Other files, such as
    /// half a file that a crash left, are skipped.
    pub async fn copy_all(&self, to: &Self) -> Result<Copied, Fault> {
        let copies = self.list().await?.into_iter().map(|listed| async move { self.copy(to, listed).await });
        let add = |mut sum: Copied, one: Copied| async move {
            sum.objects += one.objects;
            sum.bytes += one.bytes;
            sum.damaged.extend(one.damaged);
            Ok(sum)
        };
        stream::iter(copies).buffer_unordered(4).try_fold(Copied::default(), add).await
    }

    /// Copies the objects that the other store does not have yet. Returns how many.
    pub async fn copy_new(&self, to: &Self) -> Result<u64, Fault> {
        let there: HashSet<Listed> = to.list().await?.into_iter().collect();
        let mut n = 0;
        for listed in self.list().await?.into_iter().filter(|listed| !there.contains(listed)) {
            n += self.copy(to, listed).await?.objects;
        }
        Ok(n)
    }

    async fn copy(&self, to: &Self, (tenant_id, key, place): Listed) -> Result<Copied, Fault> {
        let found = self.find(tenant_id, &key, GetOptions::default(), &[place]).await?;
        match whole(tenant_id, &key, found).await {
            Ok(Some(bytes)) => {
                let size = bytes.len() as u64;
                to.write(tenant_id, &key, place, bytes).await?;
                Ok(Copied { objects: 1, bytes: size, damaged: vec![] })
            }
            Ok(None) => Ok(Copied::default()), // removed since it was listed
            Err(Fault::Malformed { .. }) => {
                Ok(Copied { damaged: vec![format!("{tenant_id}/{key}")], ..Copied::default() })
            }
            Err(fault) => Err(fault),
        }
    }

    async fn list(&self) -> Result<Vec<Listed>, Fault> {
        let (store, prefix) = match &self.backend {
            Backend::Folder(path) if !path.exists() => return Ok(Vec::new()),
            Backend::Folder(path) => (folder(path)?, Name::default()),
            Backend::Bucket { store, prefix } => (store.clone(), prefix.clone()),
        };
        let found: Vec<_> = store.list(Some(&prefix)).try_collect().await.map_err(|error| failed("list", error))?;
        let mut names: Vec<_> = found.iter().filter_map(|object| parse(&prefix, &object.location)).collect();
        names.sort_unstable_by_key(|(tenant_id, key, place)| (tenant_id.0, key.to_string(), place.is_second));
        Ok(names)
    }

    /// Writes and syncs the object, unless it is there already.
    async fn write(&self, tenant_id: TenantId, key: &BlobKey, place: ObjectName, bytes: Bytes) -> Result<(), Fault> {
        let Some((store, name)) = self.writing(tenant_id, key, place, bytes.len() as u64).await? else {
            return Ok(());
        };
        store.put(&name, PutPayload::from_bytes(bytes)).await.map(|_| ()).map_err(|error| failed("write", error))
    }

    /// The object to write; none when it is there already.
    async fn writing(
        &self,
        tenant_id: TenantId,
        key: &BlobKey,
        place: ObjectName,
        bytes: u64,
    ) -> Result<Option<Object>, Fault> {
        let (store, name) = match &self.backend {
            Backend::Folder(path) => {
                let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
                made.map_err(|error| {
                    let what = format!("the folder {} cannot be made", path.display());
                    Fault::Transient(anyhow::Error::new(error).context(what))
                })?;
                (folder(path)?, name(&Name::default(), tenant_id, key, place))
            }
            Backend::Bucket { store, prefix } => (store.clone(), name(prefix, tenant_id, key, place)),
        };
        match store.head(&name).await {
            Ok(found) if found.size == bytes => Ok(None),
            Ok(_) | Err(Error::NotFound { .. }) => Ok(Some((store, name))),
            Err(error) => Err(failed("look up", error)),
        }
    }

    /// Removes an object. An old name stays, and `false` is returned, while the name in use has no object: then the old one has the only bytes.
    async fn remove(&self, leaving: &Leaving) -> Result<bool, Fault> {
        if let Some(used) = leaving.used()
            && self
                .find(leaving.tenant_id, &leaving.key, GetOptions { head: true, ..GetOptions::default() }, &[used])
                .await?
                .is_none()
        {
            return Ok(false);
        }
        let Some((store, name)) = self.reading(leaving.tenant_id, &leaving.key, leaving.place)? else {
            return Ok(true);
        };
        match store.delete(&name).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(true),
            Err(error) => Err(failed("remove", error)),
        }
    }

    /// Removes every object of a tenant that is forgotten, whatever its name. Returns how many. None: a backup is being made, which copies them.
    pub async fn remove_all(&self, db: &Db, tenant_id: TenantId) -> Result<Option<u64>, Fault> {
        let (store, prefix) = match &self.backend {
            Backend::Folder(path) if !path.exists() => return Ok(Some(0)),
            Backend::Folder(path) => (folder(path)?, Name::default()),
            Backend::Bucket { store, prefix } => (store.clone(), prefix.clone()),
        };
        let of_tenant = prefix.join(tenant_id.to_string());
        let found: Vec<_> = store.list(Some(&of_tenant)).try_collect().await.map_err(|error| failed("list", error))?;
        let db = db.sibling(1); // as `collect`
        let removed = remove_listed(&db, &*store, &found).await;
        db.close().await;
        removed
    }

    /// The object to read. None: there is no folder, so no blob.
    fn reading(&self, tenant_id: TenantId, key: &BlobKey, place: ObjectName) -> Result<Option<Object>, Fault> {
        Ok(match &self.backend {
            Backend::Folder(path) if !path.exists() => None,
            Backend::Folder(path) => Some((folder(path)?, name(&Name::default(), tenant_id, key, place))),
            Backend::Bucket { store, prefix } => Some((store.clone(), name(prefix, tenant_id, key, place))),
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

/// Removes objects, unless others copy or remove some: then it returns none.
async fn remove_listed(db: &Db, store: &dyn ObjectStore, found: &[ObjectMeta]) -> Result<Option<u64>, Fault> {
    let conn = &mut *db.acquire().await?;
    for some in found.chunks(ROUND as usize) {
        if !store::blobs::begin_removal(conn).await? {
            return Ok(None);
        }
        for object in some {
            match store.delete(&object.location).await {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(failed("remove", error)),
            }
        }
        store::blobs::end_removal(conn).await?;
    }
    Ok(Some(found.len() as u64))
}

/// How many rows one statement of the collector takes.
const ROUND: i64 = 500;
/// So many objects may fail to be removed before a round ends.
const MAX_FAULTS: usize = 4;

/// Removes blobs that no row refers to and nobody has touched for a day, unless a backup is being made. An object is marked first, in a commit of its
/// own. A writer of the same bytes from then on uses the object's other name, so a removal may stall for as long as it likes: it hits
/// no name that is in use. A crash in between leaves the row for the next round.
pub async fn collect(env: &Env) -> Result<(), Fault> {
    // A session beside the pool: the store may take long to remove an object, and the pool is for others. The right to remove objects ends with it.
    let db = env.db.sibling(1);
    let collected = collect_on(env, &db).await;
    db.close().await;
    collected
}

async fn collect_on(env: &Env, db: &Db) -> Result<(), Fault> {
    let conn = &mut *db.acquire().await?;
    let at = env.clock.sql();
    while store::blobs::remove_rows(conn, at, ROUND).await? > 0 {}
    while store::blobs::mark(conn, at, ROUND).await? > 0 {}
    let (mut after, mut n_removed, mut faults) = (None, 0, Vec::new());
    loop {
        let leaving = store::blobs::leaving(conn, at, after.as_ref(), ROUND).await?;
        if leaving.is_empty() || !store::blobs::begin_removal(conn).await? {
            break; // the next round comes within the hour
        }
        for one in &leaving {
            if !store::blobs::may_leave(conn, one).await? {
                continue;
            }
            match env.blobs.remove(one).await {
                Ok(false) => {
                    tracing::warn!(blob = %one.key, "a blob has no object of its new name; its old one is used again");
                    store::blobs::use_again(conn, one).await?;
                }
                Ok(true) => {
                    store::blobs::left(conn, at, one).await?;
                    n_removed += 1;
                }
                // One object that cannot be removed keeps no other; a store that is away is not asked again and again.
                Err(fault) => faults.push(fault),
            }
            if faults.len() > MAX_FAULTS {
                break;
            }
        }
        store::blobs::end_removal(conn).await?;
        if faults.len() > MAX_FAULTS {
            break;
        }
        after = leaving.into_iter().last();
    }
    if n_removed > 0 {
        tracing::info!(n_removed, "removed {n_removed} blobs that nothing names");
    }
    faults.into_iter().next().map_or(Ok(()), Err)
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

/// The end of an object's second name.
const SECOND: &str = ".2";

/// The name of a blob's object. It is made of an id and a hash, so it cannot lead elsewhere.
fn name(prefix: &Name, tenant_id: TenantId, key: &BlobKey, place: ObjectName) -> Name {
    let ending = if place.is_second { SECOND } else { "" };
    prefix.clone().join(tenant_id.to_string()).join(format!("{key}{ending}"))
}

fn parse(prefix: &Name, location: &Name) -> Option<Listed> {
    let mut parts = location.prefix_match(prefix)?;
    let (tenant_id, key) = (parts.next()?, parts.next()?);
    let plain = key.as_ref().strip_suffix(SECOND).unwrap_or(key.as_ref());
    let (tenant_id, key) = (tenant_id.as_ref().parse().ok()?, plain.parse().ok()?);
    let place = ObjectName::BOTH.into_iter().find(|place| name(prefix, tenant_id, &key, *place) == *location)?;
    parts.next().is_none().then_some((tenant_id, key, place))
}

/// Reads a whole object that was found. Bytes that do not match their name are an error.
async fn whole(tenant_id: TenantId, key: &BlobKey, found: Option<GetResult>) -> Result<Option<Bytes>, Fault> {
    let Some(found) = found else { return Ok(None) };
    let bytes = found.bytes().await.map_err(|error| failed("read", error))?;
    if BlobKey::of_hash(Sha256::digest(&bytes).into()) != *key {
        return Err(Fault::Malformed { what: format!("blob {tenant_id}/{key} is damaged") });
    }
    Ok(Some(bytes))
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
            for place in ObjectName::BOTH {
                assert_eq!(parse(&prefix, &name(&prefix, tenant_id, &key, place)), Some((tenant_id, key, place)));
            }
            for other in ["readme".into(), format!("{tenant_id}/{key}#1"), format!("{tenant_id}/{key}/x")] {
                let location = Name::from_iter(prefix.parts().chain(Name::from(other).parts()));
                assert_eq!(parse(&prefix, &location), None, "{location}");
            }
        }
    }
}
