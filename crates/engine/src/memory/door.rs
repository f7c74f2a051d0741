//! The direct door: a note or a file becomes a document of the tenant's own `manual` source. What is text is searchable as soon as the call returns.

use bytes::Bytes;
use domain::text::has_nul;
use domain::{DocumentStatus, DocumentType, Fault, Record, TenantId, hex, text};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use store::sources;

use super::{Remembered, remember};
use crate::Env;

/// A note or a file as it was handed in.
#[derive(Clone, Debug, Default)]
pub struct Incoming {
    pub content: Bytes,
    /// The file's own name. It is shown, never used as a path.
    pub file_name: Option<String>,
    /// As the sender states it. Without it the ending of the name decides; without a name it is plain text.
    pub content_type: Option<String>,
    pub title: Option<String>,
    /// Sent again under the same name it is the same document. Without a name the hash of its text is its name.
    pub external_id: Option<String>,
    pub metadata: Map<String, Value>,
}

/// The reasons why a note or a file is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("there is no text in it")]
    Empty,
    #[error("a text without a file name must be UTF-8")]
    NotUtf8,
    #[error("the {0} has more than {1} characters")]
    TooLong(&'static str, usize),
    #[error("the external_id has a character that is not text")]
    OddName,
    #[error("it could not be remembered")]
    Fault(#[from] Fault),
}

/// The treatment of a content.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    /// It is text, so it is found when the call returns.
    Text { title: Option<String>, text: String },
    /// Lane `document_queue` reads it.
    File,
}

/// Remembers one note or file. Durable when it returns; safe to repeat. A file that is not text is `pending` then, and read at once by a worker.
pub async fn accept(env: &Env, tenant_id: TenantId, incoming: Incoming) -> Result<Remembered, Refusal> {
    for (what, given, most) in [("title", &incoming.title, 1_000), ("external_id", &incoming.external_id, 1_000)] {
        if given.as_ref().is_some_and(|given| given.chars().count() > most) {
            return Err(Refusal::TooLong(what, most));
        }
    }
    if incoming.external_id.as_ref().is_some_and(|id| id.chars().any(char::is_control)) {
        return Err(Refusal::OddName);
    }
    let (html_title, text, status) = match content(&incoming)? {
        Content::Text { title, text } => (title, text, DocumentStatus::Completed),
        Content::File => (None, String::new(), DocumentStatus::Pending),
    };
    let name = match status {
        DocumentStatus::Pending => named_by(Sha256::digest(&incoming.content).into()),
        _ => named_by(text::sha256(&text)),
    };
    let is_file = incoming.file_name.is_some() || status == DocumentStatus::Pending;
    let blob = match is_file {
        true => Some(env.blobs.put(&env.db, tenant_id, incoming.content.clone()).await?.to_string()),
        false => None,
    };
    let mut metadata = incoming.metadata;
    if let Some(name) = &incoming.file_name {
        metadata.insert("file_name".into(), name.as_str().into());
    }
    if let Some(media_type) = incoming.content_type.filter(|_| is_file) {
        metadata.insert("media_type".into(), media_type.into());
    }
    let mut conn = env.db.acquire().await.map_err(Fault::from)?;
    let source_id = sources::ensure_manual(&mut conn, tenant_id).await.map_err(Fault::from)?;
    drop(conn);
    let document_type = if is_file { DocumentType::File } else { DocumentType::Note };
    let external_id = incoming.external_id.filter(|id| !id.trim().is_empty()).unwrap_or(name);
    let record = Record {
        title: incoming.title.or(html_title).or(incoming.file_name),
        blob_key: blob,
        source_metadata: Value::Object(metadata),
        status,
        ..Record::new(source_id, external_id, document_type, text)
    };
    let begin = || async { Ok(env.db.begin().await?) };
    let (tx, mut batch) = remember(env, tenant_id, vec![record], begin).await?;
    tx.commit().await.map_err(Fault::from)?;
    batch.records.pop().ok_or(Refusal::Empty)
}

fn named_by(hash: [u8; 32]) -> String {
    format!("sha256:{}", hex::encode(hash))
}

/// Takes a content as text where its type, or the ending of its name, says so and it is UTF-8. Everything else is a file.
fn content(incoming: &Incoming) -> Result<Content, Refusal> {
    let told = incoming.content_type.as_deref().map(|told| told.split(';').next().unwrap_or_default().trim());
    let ending =
        incoming.file_name.as_deref().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending.to_lowercase());
    let (is_text, is_html) = match (told, ending.as_deref()) {
        (Some("text/html" | "application/xhtml+xml"), _) => (true, true),
        (Some(told), _) if told.starts_with("text/") => (true, false),
        // Programs send octet-stream when they do not know the type.
        (None | Some("" | "application/octet-stream"), ending) => match ending {
            Some("html" | "htm" | "xhtml") => (true, true),
            None if incoming.file_name.is_none() => (told.is_none_or(str::is_empty), false),
            Some("txt" | "text" | "md" | "markdown" | "log" | "csv" | "rst" | "adoc") => (true, false),
            _ => (false, false),
        },
        (Some(_), _) => (false, false),
    };
    let text = match std::str::from_utf8(&incoming.content) {
        Ok(text) if is_text && !has_nul(text) => text,
        Ok(_) => return Ok(Content::File),
        Err(_) if is_text && incoming.file_name.is_none() => return Err(Refusal::NotUtf8),
        Err(_) => return Ok(Content::File),
    };
    let (title, text) = if is_html { text::html_to_text(text) } else { (None, text::normalise(text)) };
    if text.trim().is_empty() {
        return Err(Refusal::Empty);
    }
    Ok(Content::Text { title, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_text_is_read_at_once_and_everything_else_is_a_file() {
        let of = |told: Option<&str>, name: Option<&str>, bytes: &'static [u8]| {
            let (content_type, file_name) = (told.map(Into::into), name.map(Into::into));
            content(&Incoming { content: Bytes::from_static(bytes), content_type, file_name, ..Incoming::default() })
        };
        let text = |text: &str| Some(Content::Text { title: None, text: text.into() });
        for (told, name, bytes, expected) in [
            (None, None, &b"hi"[..], text("hi")),
            (Some("text/html; charset=utf-8"), Some("a.txt"), b"<p>hi", text("hi")),
            (Some("text/markdown"), None, b"# hi", text("# hi")),
            (Some("application/octet-stream"), Some("notes.MD"), b"hi", text("hi")),
            (None, Some("page.htm"), b"<p>hi", text("hi")),
            (None, Some("latin.txt"), b"caf\xe9", Some(Content::File)),
            (None, Some("wide.txt"), b"h\0i\0", Some(Content::File)),
            (None, Some("README"), b"hi", Some(Content::File)),
            (Some("application/pdf"), Some("a.pdf"), b"%PDF", Some(Content::File)),
            (None, Some("a.pdf"), b"%PDF", Some(Content::File)),
            (Some("application/octet-stream"), None, b"%PDF", Some(Content::File)),
        ] {
            assert_eq!(of(told, name, bytes).ok(), expected, "{told:?} {name:?}");
        }
        assert!(matches!(of(None, Some("a.txt"), b" \n"), Err(Refusal::Empty)));
        assert!(matches!(of(None, None, b"caf\xe9"), Err(Refusal::NotUtf8)));
    }
}
