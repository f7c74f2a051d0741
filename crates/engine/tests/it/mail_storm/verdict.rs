//! Compares memory with a mailbox's own ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use domain::SourceId;
use serde_json::Value;
use testkit::Sources;

use super::letters::Written;
use super::mailbox::Kept;

/// The most examples of each kind.
const SHOWN: usize = 5;

/// The differences by their kind. All must be empty.
#[derive(Debug, Default)]
pub struct Verdict {
    pub letters: usize,
    pub files: usize,
    pub left_out: usize,
    differing: BTreeMap<&'static str, Vec<String>>,
}

impl Verdict {
    pub fn is_clean(&self) -> bool {
        self.letters > 0 && self.differing.is_empty()
    }

    fn is_wrong(&mut self, how: &'static str, which: impl Into<String>) {
        self.differing.entry(how).or_default().push(which.into());
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} letters, {} files, {} left out", self.letters, self.files, self.left_out)?;
        for (how, which) in &self.differing {
            write!(f, "; {} {how}: {:?}", which.len(), &which[..which.len().min(SHOWN)])?;
        }
        Ok(())
    }
}

#[derive(sqlx::FromRow)]
struct Document {
    external_id: String,
    source_metadata: Value,
    thread_id: Option<String>,
    blob_key: Option<String>,
    blob_bytes: Option<i64>,
    has_text: bool,
}

/// Compares documents, files, blobs and the list of what was dealt with.
pub async fn verdict(t: &Sources, id: SourceId, truth: &BTreeMap<String, Kept>) -> Verdict {
    let mut conn = t.world.conn().await;
    let documents: Vec<Document> = sqlx::query_as(
        "select d.external_id, d.source_metadata, d.thread_id, d.blob_key, b.bytes as blob_bytes, d.text <> '' as has_text
         from source_documents d left join tributary.blobs b on b.tenant_id = d.tenant_id and b.sha256 = d.blob_key
         where d.source_id = $1 and d.deleted_at is null",
    )
    .bind(id.0)
    .fetch_all(&mut *conn)
    .await
    .expect("documents");
    let processed: Vec<(String, Option<String>)> =
        sqlx::query_as("select message_id, skip_reason from processed_messages where source_id = $1")
            .bind(id.0)
            .fetch_all(&mut *conn)
            .await
            .expect("processed letters");
    drop(conn);
    let mut verdict = Verdict::default();
    let (mut letters, mut files): (BTreeMap<&str, &Document>, BTreeMap<&str, Vec<&Document>>) = Default::default();
    for document in &documents {
        if let Some(id) = document.external_id.strip_prefix("message:") {
            verdict.letters += 1;
            if letters.insert(id, document).is_some() {
                verdict.is_wrong("doubled", id);
            }
        } else if let Some((id, _)) = document.external_id.strip_prefix("attachment:").and_then(|id| id.split_once('/'))
        {
            verdict.files += 1;
            files.entry(id).or_default().push(document);
        } else {
            verdict.is_wrong("of no kind", &document.external_id);
        }
    }
    for (id, kept) in truth {
        match (letters.get(id.as_str()), kept.left_out) {
            (None, None) => verdict.is_wrong("lost", id),
            (Some(_), Some(_)) => verdict.is_wrong("let in against a rule", id),
            (None, Some(_)) => {}
            (Some(document), None) => match told(document, kept) {
                Ok(()) => {}
                Err(how) => verdict.is_wrong(how, id),
            },
        }
        let expected: BTreeSet<&str> = kept.files.iter().copied().filter(|_| kept.left_out.is_none()).collect();
        let own = files.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
        let names: Vec<&str> = own.iter().filter_map(|file| name(file)).collect();
        if names.len() != expected.len() || names.iter().any(|name| !expected.contains(name)) {
            verdict.is_wrong("without its files", format!("{id} {names:?} {expected:?}"));
        }
        if own.iter().any(|file| told(file, kept).is_err()) {
            verdict.is_wrong("with a file that says otherwise", id);
        }
    }
    let surplus = letters.keys().chain(files.keys()).filter(|id| !truth.contains_key(**id));
    let surplus: BTreeSet<&str> = surplus.copied().collect();
    surplus.into_iter().for_each(|id| verdict.is_wrong("surplus", id));
    bytes(&documents, &mut verdict);
    dealt_with(&processed, truth, &mut verdict);
    verdict
}

fn name(file: &Document) -> Option<&str> {
    file.source_metadata.get("attachment_filename").and_then(Value::as_str)
}

/// Whether a document says of its letter what the mailbox says.
fn told(document: &Document, kept: &Kept) -> Result<(), &'static str> {
    let metadata = &document.source_metadata;
    if metadata["place"] != kept.place {
        return Err("in another place");
    }
    let folders: Vec<&str> =
        metadata["folders"].as_array().into_iter().flatten().filter_map(|folder| folder.as_str()).collect();
    let is_named = |names: &Vec<String>| names.iter().any(|name| folders.contains(&name.as_str()));
    if folders.len() != kept.folders.len() || !kept.folders.iter().all(is_named) {
        return Err("in another folder");
    }
    if document.thread_id.is_none() || !(document.has_text || document.blob_key.is_some()) {
        return Err("without its words");
    }
    Ok(())
}

/// Each file's bytes are one blob, in however many letters it is.
fn bytes(documents: &[Document], verdict: &mut Verdict) {
    let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for document in documents.iter().filter(|document| document.external_id.starts_with("attachment:")) {
        let (Some(name), Some(key)) = (name(document), &document.blob_key) else {
            verdict.is_wrong("without bytes", &document.external_id);
            continue;
        };
        let expected = Written::file(name).map(|file| file.bytes().len());
        if document.blob_bytes.and_then(|bytes| usize::try_from(bytes).ok()) != expected {
            verdict.is_wrong("with other bytes", &document.external_id);
        }
        keys.entry(name).or_default().insert(key);
    }
    let all: BTreeSet<&str> = keys.values().flatten().copied().collect();
    if all.len() != keys.len() {
        verdict.is_wrong("files with more than one blob, or one that is another's", format!("{keys:?}"));
    }
}

/// Each letter that is read is in the list, with the reason if it was left out.
fn dealt_with(processed: &[(String, Option<String>)], truth: &BTreeMap<String, Kept>, verdict: &mut Verdict) {
    let known: BTreeMap<&str, Option<&str>> =
        processed.iter().map(|(id, reason)| (id.as_str(), reason.as_deref())).collect();
    verdict.left_out = known.values().flatten().count();
    for (id, kept) in truth {
        match known.get(id.as_str()) {
            None => verdict.is_wrong("not dealt with", id),
            Some(reason) if *reason != kept.left_out => {
                verdict.is_wrong("left out by another rule", format!("{id} {reason:?} {:?}", kept.left_out));
            }
            Some(_) => {}
        }
    }
    let gone: Vec<&str> = known.keys().copied().filter(|id| !truth.contains_key(*id)).collect();
    gone.into_iter().for_each(|id| verdict.is_wrong("dealt with and gone", id));
}
