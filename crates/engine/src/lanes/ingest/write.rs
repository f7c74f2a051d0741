//! Writes one page: its records into memory, and everything that goes with them, in one commit.

use connectors::pull::{Item, Page};
use domain::text::normalise;
use domain::{DocumentId, DocumentStatus, Fault, JobKind, Record, SourceId};
use serde_json::json;
use store::crash::{self, Point};
use store::jobs::{self, Progress};
use store::memory::documents::{self, NamedType};
use store::{failures, sources};

use super::{Checkpoint, Run, Trouble};
use crate::lanes::queue_of;
use crate::lanes::read_file::ReadFile;
use crate::mail::letters::Mailbox;
use crate::memory::{Batch, Change, remember};
use crate::pull::Provider;

impl Run<'_> {
    /// Records, what could not be read, what was met, and where to go on: one commit. `false`: a person stopped the job or paused its
    /// source, and nothing was written.
    pub(super) async fn commit(
        &self,
        kind: JobKind,
        after: &Checkpoint,
        pages: Vec<Page>,
        gone: Vec<String>,
    ) -> Result<bool, Trouble> {
        let note = pages.iter().rev().find_map(|page| page.note.clone());
        let mut failed = Vec::new();
        let mut records = self.tombstones(&gone).await?;
        let mut items: Vec<Item> = Vec::new();
        for page in pages {
            failed.extend(page.failed.into_iter().map(|failed| (failed.external_id, failed.reason, failed.payload)));
            items.extend(page.items);
        }
        let mut seen: Vec<String> = items.iter().map(|item| item.raw.external_id.clone()).collect();
        seen.extend(failed.iter().map(|(name, ..)| name.clone()));
        let mut letters = None;
        match self.mailbox() {
            Some(mailbox) => {
                let mut sorted = mailbox.sort(items, &gone).await?;
                records.append(&mut sorted.records);
                letters = Some(sorted);
            }
            None => {
                for item in items {
                    records.push(record(self.source_id, self.reader.provider, item)?);
                }
            }
        }
        self.drop_unknown(&mut records).await?;
        let named: Vec<String> = records.iter().map(|record| record.external_id.clone()).collect();
        let titles = titles_of_files(&records);
        let of_page = letters.as_ref();
        let begin = || async move {
            let mut effect = self.lease.begin_step(self.env).await?;
            if let Some(letters) = of_page {
                letters.hold(&mut effect, self.tenant_id).await?;
            }
            Ok::<_, Fault>(effect)
        };
        let (mut effect, batch) = if records.is_empty() {
            (begin().await?, Batch::default())
        } else {
            remember(self.env, self.tenant_id, records, begin).await?
        };
        let (at, tenant_id, source_id) = (self.env.clock.sql(), self.tenant_id, self.source_id);
        if let Some(letters) = &letters {
            letters.mark(&mut effect, at, tenant_id, source_id).await?;
        }
        if self.mailbox().is_none() && !titles.is_empty() {
            let again = store::files::rename(&mut effect, tenant_id, source_id, &titles).await?;
            let again: Vec<ReadFile> = again.into_iter().map(|id| ReadFile { document_id: DocumentId(id) }).collect();
            queue_of::<ReadFile>().send(&mut effect, tenant_id, &again).await?;
        }
        let added = progress(&batch, failed.len());
        let names: Vec<&str> = seen.iter().map(String::as_str).collect();
        if kind == JobKind::Full && !names.is_empty() {
            jobs::note_seen(&mut effect, tenant_id, self.job_id, &names).await?;
        }
        let read: Vec<&str> = named.iter().chain(&gone).map(String::as_str).collect();
        failures::clear(&mut effect, tenant_id, source_id, &read).await?;
        if !failed.is_empty() {
            failures::note(&mut effect, at, tenant_id, source_id, self.job_id, &failed).await?;
        }
        let place = after.stored()?;
        let step = self.step(kind, after);
        let is_running =
            jobs::advance(&mut effect, at, tenant_id, self.job_id, kind, &place, &step, note.as_deref(), &added)
                .await?;
        if !is_running || !sources::is_synced(&mut effect, tenant_id, source_id).await? {
            return Ok(false);
        }
        crash::at(Point::PullBeforeCommit)?;
        effect.commit().await?;
        crash::at(Point::PullAfterCommit)?;
        Ok(true)
    }

    /// The mailbox that is read, if the source is one.
    fn mailbox(&self) -> Option<Mailbox<'_>> {
        let spec = self.reader.provider.mailbox.as_ref()?;
        Some(Mailbox {
            env: self.env,
            tenant_id: self.tenant_id,
            source_id: self.source_id,
            provider: self.reader.provider,
            spec,
            account: &self.reader.account,
        })
    }

    /// These are gone at the provider.
    async fn tombstones(&self, names: &[String]) -> Result<Vec<Record>, Trouble> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut conn = self.env.db.acquire().await?;
        let known = documents::types_of(&mut conn, self.tenant_id, self.source_id, names).await?;
        Ok(known.into_iter().map(|known| tombstone(self.source_id, known)).collect())
    }

    /// A provider also tells of deletions of what we never had.
    async fn drop_unknown(&self, records: &mut Vec<Record>) -> Result<(), Trouble> {
        let deleted: Vec<String> =
            records.iter().filter(|record| record.is_deleted).map(|record| record.external_id.clone()).collect();
        if deleted.is_empty() {
            return Ok(());
        }
        let mut conn = self.env.db.acquire().await?;
        let known = documents::types_of(&mut conn, self.tenant_id, self.source_id, &deleted).await?;
        records
            .retain(|record| !record.is_deleted || known.iter().any(|known| known.external_id == record.external_id));
        Ok(())
    }
}

/// The names of records that are files, each with its title as it is stored.
fn titles_of_files(records: &[Record]) -> Vec<(String, String)> {
    let files = records.iter().filter(|record| record.blob_key.is_some());
    let titled = files.filter_map(|record| Some((record.external_id.clone(), normalise(record.title.as_deref()?))));
    titled.filter(|(_, title)| !title.is_empty()).collect()
}

fn progress(batch: &Batch, n_failed: usize) -> Progress {
    let count = |wanted: &[Change]| {
        let n = batch.records.iter().filter(|record| wanted.contains(&record.change)).count();
        i64::try_from(n).unwrap_or(i64::MAX)
    };
    Progress {
        created: count(&[Change::Created]),
        updated: count(&[Change::Updated]),
        unchanged: count(&[Change::Unchanged, Change::Superseded]),
        deleted: count(&[Change::Deleted]),
        kept_out: count(&[Change::KeptOut]),
        failed: i64::try_from(n_failed).unwrap_or(i64::MAX),
        spent: batch.spent,
    }
}

fn record(source_id: SourceId, provider: Provider, item: Item) -> Result<Record, Fault> {
    let Item { raw, title, text, mentions, letter: _, file } = item;
    let mut source_metadata = json!({ "provider": provider.name });
    let file = file.filter(|_| !raw.is_deleted);
    if let Some(file) = &file {
        source_metadata["file_name"] = file.name.clone().into();
        source_metadata["media_type"] = file.media_type.as_str().into();
        source_metadata["size_bytes"] = file.size_bytes.into();
    }
    if let Some(url) = (provider.link)(&raw.payload) {
        source_metadata["url"] = url.into(); // a hit of a search leads there
    }
    let document_type = raw.document_type.parse().map_err(|odd: String| Fault::Malformed { what: odd })?;
    Ok(Record {
        title,
        source_version: raw.source_updated_at.map(|at| at.timestamp_micros()).filter(|_| !raw.is_deleted),
        raw_payload: Some(raw.payload),
        source_metadata,
        source_created_at: raw.source_created_at,
        source_updated_at: raw.source_updated_at,
        is_deleted: raw.is_deleted,
        mentions: Some(mentions),
        // Where its bytes are those that were read, text and status stay.
        status: if file.is_some() { DocumentStatus::Pending } else { DocumentStatus::default() },
        blob_key: file.and_then(|file| file.blob_key),
        ..Record::new(source_id, raw.external_id, document_type, text)
    })
}

fn tombstone(source_id: SourceId, NamedType { external_id, document_type }: NamedType) -> Record {
    Record { is_deleted: true, mentions: Some(Vec::new()), ..Record::new(source_id, external_id, document_type, "") }
}
