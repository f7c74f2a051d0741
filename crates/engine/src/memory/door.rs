//! The direct door: a note or a file becomes a document of the tenant's own `manual` source, searchable as soon as the call returns.

use bytes::Bytes;
use domain::{DocumentType, Fault, Record, TenantId, hex, text};
use serde_json::{Map, Value};
use store::sources;

use super::{Remembered, remember};
use crate::Env;

/// A note or a file as it was handed in.
#[derive(Clone, Debug, Default)]
pub struct Incoming {
    pub content: Bytes,
    /// The file's own name. It is shown, never used as a path.
    pub file_name: Option<String>,
    /// As the sender states it. Without it the ending of the name decides, else it is plain text.
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
    #[error("its text is not UTF-8")]
    NotUtf8,
    #[error("{0} is not read yet; text, markdown and html are")]
    Unknown(String),
    #[error("the {0} has more than {1} characters")]
    TooLong(&'static str, usize),
    #[error("the external_id has a character that is not text")]
    OddName,
    #[error("it could not be remembered")]
    Fault(#[from] Fault),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Html,
}

/// Remembers one note or file. Durable when it returns; safe to repeat.
pub async fn accept(env: &Env, tenant_id: TenantId, incoming: Incoming) -> Result<Remembered, Refusal> {
    let format = format(&incoming)?;
    let source = std::str::from_utf8(&incoming.content).map_err(|_| Refusal::NotUtf8)?;
    let (html_title, text) = match format {
        Format::Text => (None, text::normalise(source)),
        Format::Html => text::html_to_text(source),
    };
    if text.trim().is_empty() {
        return Err(Refusal::Empty);
    }
    for (what, given, most) in [("title", &incoming.title, 1_000), ("external_id", &incoming.external_id, 1_000)] {
        if given.as_ref().is_some_and(|given| given.chars().count() > most) {
            return Err(Refusal::TooLong(what, most));
        }
    }
    if incoming.external_id.as_ref().is_some_and(|id| id.chars().any(char::is_control)) {
        return Err(Refusal::OddName);
    }
    let blob = match &incoming.file_name {
        Some(_) => Some(env.blobs.put(&env.db, tenant_id, incoming.content.clone()).await?.to_string()),
        None => None,
    };
    let mut metadata = incoming.metadata;
    if let Some(name) = &incoming.file_name {
        metadata.insert("file_name".into(), name.as_str().into());
    }
    let mut conn = env.db.acquire().await.map_err(Fault::from)?;
    let source_id = sources::ensure_manual(&mut conn, tenant_id).await.map_err(Fault::from)?;
    drop(conn);
    let document_type = if incoming.file_name.is_some() { DocumentType::File } else { DocumentType::Note };
    let external_id = incoming.external_id.filter(|id| !id.trim().is_empty()).unwrap_or_else(|| named_by(&text));
    let record = Record {
        title: incoming.title.or(html_title).or(incoming.file_name),
        blob_key: blob,
        source_metadata: Value::Object(metadata),
        ..Record::new(source_id, external_id, document_type, text)
    };
    let begin = || async { Ok(env.db.begin().await?) };
    let (tx, mut batch) = remember(env, tenant_id, vec![record], begin).await?;
    tx.commit().await.map_err(Fault::from)?;
    batch.records.pop().ok_or(Refusal::Empty)
}

fn named_by(text: &str) -> String {
    let hash = text::sha256(text);
    format!("sha256:{}", hex::encode(hash))
}

fn format(incoming: &Incoming) -> Result<Format, Refusal> {
    let told = incoming.content_type.as_deref().map(|told| told.split(';').next().unwrap_or_default().trim());
    let ending =
        incoming.file_name.as_deref().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending.to_lowercase());
    match (told, ending.as_deref()) {
        (Some("text/html" | "application/xhtml+xml"), _) => Ok(Format::Html),
        (Some(told), _) if told.starts_with("text/") => Ok(Format::Text),
        // Programs send octet-stream when they do not know the type.
        (None | Some("" | "application/octet-stream"), ending) => match ending {
            Some("html" | "htm" | "xhtml") => Ok(Format::Html),
            None | Some("txt" | "text" | "md" | "markdown" | "log" | "csv" | "rst" | "adoc") => Ok(Format::Text),
            Some(other) => Err(Refusal::Unknown(format!("a .{other} file"))),
        },
        (Some(told), _) => Err(Refusal::Unknown(told.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_type_then_by_ending() {
        let of = |told: Option<&str>, name: Option<&str>| {
            let incoming =
                Incoming { content_type: told.map(Into::into), file_name: name.map(Into::into), ..Incoming::default() };
            format(&incoming).ok()
        };
        assert_eq!(of(None, None), Some(Format::Text));
        assert_eq!(of(Some("text/html; charset=utf-8"), Some("a.txt")), Some(Format::Html));
        assert_eq!(of(Some("text/markdown"), None), Some(Format::Text));
        assert_eq!(of(Some("application/octet-stream"), Some("notes.MD")), Some(Format::Text));
        assert_eq!(of(None, Some("page.htm")), Some(Format::Html));
        assert_eq!(of(Some("application/pdf"), Some("a.pdf")), None);
        assert_eq!(of(None, Some("a.pdf")), None);
    }
}
