//! Asks for messages by their ids: what a delta says of one that left its folder, or was only changed a little, is not enough to know it.

use serde_json::Value;

use super::folders::{self, Folders};
use super::graph::{Graph, Part, Told};
use super::map::{self, SELECT};
use super::round::MESSAGE_MAX_BYTES;
use crate::pull::records::parsed;
use crate::pull::{Account, Failed, PullError};

/// The outcome of asking for messages.
pub(super) struct Read {
    pub messages: Vec<map::Message>,
    /// Graph does not find them, for good or for a moment: soon after a change it may not.
    pub not_found: Vec<String>,
    /// They lie where nobody sees them, such as among what was deleted for good.
    pub hidden: Vec<String>,
    pub failed: Vec<Failed>,
}

/// Asks for messages by their ids. Which of them are in a place that is read is the caller's to say. A folder that nobody knew of before is read with its
/// neighbours.
pub(super) async fn read(
    graph: &Graph,
    account: &Account<'_>,
    folders: &mut Folders,
    ids: &[String],
) -> Result<Read, PullError> {
    let part = |id: &String| Part::new(format!("/me/messages/{id}?$select={SELECT}"));
    let answers = graph.all(account, &ids.iter().map(part).collect::<Vec<_>>()).await?;
    let (mut there, mut not_found, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (id, told) in ids.iter().zip(answers) {
        match told {
            Told::Body(body) => match parsed(map::OBJECT, &body, MESSAGE_MAX_BYTES) {
                Ok(value) => there.push(value),
                Err(behind) => failed.push(Failed { external_id: map::external_id(id), ..behind }),
            },
            Told::Refused { status: 404 | 410, .. } => not_found.push(id.clone()),
            // Not an id of this mailbox's any more.
            Told::Refused { status: 400, code } if code.as_deref() == Some("ErrorInvalidIdMalformed") => {
                not_found.push(id.clone());
            }
            // Others of the mailbox can be read, or there would be no folders.
            Told::Refused { status, code } => {
                let code = code.unwrap_or_else(|| format!("http_{status}"));
                let reason = format!("{} refuses to give it ({code})", graph.who());
                failed.push(Failed { external_id: map::external_id(id), reason, payload: Value::Null });
            }
        }
    }
    let parent = |value: &Value| value.get("parentFolderId").and_then(Value::as_str).map(str::to_owned);
    if there.iter().filter_map(parent).any(|id| !folders.contains_key(&id)) {
        for (id, folder) in folders::read(graph, account).await? {
            folders.entry(id).or_insert(folder);
        }
    }
    let (mut messages, mut hidden) = (Vec::new(), Vec::new());
    for value in there {
        let is_hidden = parent(&value).is_none_or(|id| !folders.contains_key(&id));
        match map::message(value, folders, None) {
            Ok(message) if is_hidden => hidden.push(message.id),
            Ok(message) => messages.push(message),
            Err(behind) => failed.push(behind),
        }
    }
    Ok(Read { messages, not_found, hidden, failed })
}
