//! Brings the bytes of files into the blob store before their page is written. Bytes that are stored already, for this document or another, are not fetched
//! again: not for a new name or place, and not by a job that begins again where it was stopped.

use connectors::pull::{Download, Failed, Item, RemoteFile};
use domain::{BlobKey, hex};
use sha2::{Digest as _, Sha256};
use store::memory::documents::{self, StoredFile};

use super::Trouble;
use super::fetch::Reader;
use crate::pull::Paced;
use crate::pull::tokens::Token;

/// The times that a file is fetched whose bytes are not those that its provider tells of. It may be changing meanwhile.
const MOST_TRIES: usize = 2;

/// The outcome for a file.
enum Brought {
    /// Its bytes are this blob.
    Blob(BlobKey),
    /// A person deleted its document: nobody wants the bytes.
    Unwanted,
    Gone,
    Failed(String),
}

impl Reader {
    /// Stores the bytes of the files among these items. One that is gone is no item any more, and one that cannot be had is among the failed.
    pub(super) async fn bring(
        &self,
        items: &mut Vec<Item>,
        failed: &mut Vec<Failed>,
        (token, pace): (&Token, &Paced),
    ) -> Result<(), Trouble> {
        let is_file = |item: &&Item| item.file.is_some() && !item.raw.is_deleted;
        let names: Vec<String> = items.iter().filter(is_file).map(|item| item.raw.external_id.clone()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let mut conn = self.env.db.acquire().await?;
        let stored = documents::files_of(&mut conn, self.tenant_id, self.source_id, &names).await?;
        drop(conn);
        for mut item in std::mem::take(items) {
            let Some(file) = item.file.as_mut().filter(|_| !item.raw.is_deleted) else {
                items.push(item);
                continue;
            };
            let known = stored.iter().find(|known| known.external_id == item.raw.external_id);
            let version = item.raw.source_updated_at.map(|at| at.timestamp_micros());
            match self.bring_one(&item.raw.external_id, file, version, known, (token, pace)).await? {
                Brought::Blob(key) => file.blob_key = Some(key.to_string()),
                Brought::Unwanted => {}
                Brought::Gone => continue,
                Brought::Failed(reason) => {
                    failed.push(Failed { external_id: item.raw.external_id, reason, payload: item.raw.payload });
                    continue;
                }
            }
            items.push(item);
        }
        Ok(())
    }

    async fn bring_one(
        &self,
        name: &str,
        file: &RemoteFile,
        version: Option<i64>,
        known: Option<&StoredFile>,
        (token, pace): (&Token, &Paced),
    ) -> Result<Brought, Trouble> {
        if known.is_some_and(|known| known.is_kept_out) {
            return Ok(Brought::Unwanted);
        }
        let told: Option<BlobKey> = file.sha256.as_deref().and_then(|hash| hash.to_lowercase().parse().ok());
        let had: Option<BlobKey> = known.and_then(|known| known.blob_key.as_deref()?.parse().ok());
        let is_as_it_was = match &told {
            Some(told) => had.as_ref() == Some(told),
            // Without a hash, what was not changed since is the same.
            None => version.is_some() && known.is_some_and(|known| known.source_version == version),
        };
        if let Some(had) = had.filter(|_| is_as_it_was) {
            return Ok(Brought::Blob(had));
        }
        let (env, tenant_id) = (&self.env, self.tenant_id);
        if let (Some(told), Some(size)) = (&told, file.size_bytes)
            && env.blobs.keep(&env.db, tenant_id, told, size).await?
        {
            return Ok(Brought::Blob(*told));
        }
        for _ in 0..MOST_TRIES {
            let asked = self.connector.download(&self.account(token, pace), name).await;
            let bytes = match asked.map_err(|error| Trouble::Pull(error, token.clone()))? {
                Download::Bytes(bytes) => bytes,
                Download::Gone => return Ok(Brought::Gone),
                Download::Refused(reason) => return Ok(Brought::Failed(reason)),
            };
            let is_whole = file.size_bytes.is_none_or(|size| size == bytes.len() as u64);
            let hash = hex::encode(Sha256::digest(&bytes));
            if is_whole && told.as_ref().is_none_or(|told| told.to_string() == hash) {
                return Ok(Brought::Blob(env.blobs.put(&env.db, tenant_id, bytes).await?));
            }
        }
        Ok(Brought::Failed(format!("what {} gives is not what it tells of", self.provider.label)))
    }
}
