//! Files that came with an event: each makes a document of its own beside the event's, in the same commit (lane `remember_activity`). Whether one can be read
//! is told by its bytes; only what machines add to a letter makes no document.

use domain::mail::{Attachment, LeftOut, files};
use domain::{ActivityId, DocumentStatus, DocumentType, Fault, Record, SourceId, TenantId};
use serde_json::{Map, Value};
use store::activities::{self, Attached};
use store::claims::ToRemember;

use crate::Env;
use crate::lanes::queue_of;
use crate::lanes::remember_activity::RememberActivity;

/// The activities that one tick of upkeep has remembered again for their files.
const BITE: i64 = 100;
/// A file that came so long ago should have been looked at, in seconds.
const SILENT_SECS: f64 = 300.0;

/// The reason why a file of an event makes no document. None: it makes one, whatever its kind.
pub fn left_out(file: &activities::Attachment) -> Option<LeftOut> {
    let media_type = file.content_type.as_deref().unwrap_or_default();
    let as_of_letter = Attachment {
        part: String::new(),
        name: Some(file.name.clone()),
        media_type: media_type.split(';').next().unwrap_or_default().trim().to_lowercase(),
        size_bytes: file.bytes.unsigned_abs(),
        content_id: None,
        // Senders name the files that a letter's body shows, and no others.
        is_inline: file.content_id.is_some(),
        content: None,
        left_out: None,
    };
    let why = files::verdict(&as_of_letter)?;
    let is_picture = files::media_type(&as_of_letter).starts_with("image/");
    matches!((why, is_picture), (LeftOut::Machine, _) | (LeftOut::Inline, true)).then_some(why)
}

/// The name of a file as people see it.
pub fn title(file: &activities::Attachment) -> &str {
    if file.name.trim().is_empty() { "A file without a name" } else { &file.name }
}

/// The documents of an event's files, which a worker reads once they are remembered.
pub(crate) fn records(source_id: SourceId, activity: &ToRemember, attached: &[Attached]) -> Vec<Record> {
    let id = ActivityId(activity.id);
    let of_event = |name: &str, values: &Value| values.get(name).filter(|value| value.is_string()).cloned();
    let record = |one: &Attached| {
        let file = &one.file;
        let mut told = Map::new();
        told.insert("activity_id".into(), id.to_string().into());
        for (name, value) in [
            ("from", of_event("from", &activity.metadata)),
            ("to", of_event("to", &activity.metadata)),
            ("subject", of_event("subject", &activity.raw_data)),
            ("attachment_filename", Some(file.name.clone().into()).filter(|_| !file.name.is_empty())),
            ("media_type", file.content_type.clone().map(Value::from)),
            ("size_bytes", Some(file.bytes.into())),
        ] {
            told.extend(value.map(|value| (name.to_owned(), value)));
        }
        Record {
            title: Some(title(file).to_owned()),
            blob_key: Some(file.blob_key.clone()),
            contact_id: activity.contact_id,
            source_metadata: Value::Object(told),
            source_created_at: Some(activity.created_at),
            status: DocumentStatus::Pending,
            ..Record::new(source_id, id.file_external_id(one.ordinal), DocumentType::File, "")
        }
    };
    attached.iter().filter(|one| left_out(&one.file).is_none()).map(record).collect()
}

/// The tombstones of the files of an activity, by the name of the activity's document.
pub(crate) async fn tombstones(
    env: &Env,
    tenant_id: TenantId,
    source_id: SourceId,
    name: &str,
) -> store::Result<Vec<Record>> {
    let Some(id) = ActivityId::from_external_id(name) else { return Ok(Vec::new()) };
    let attached = env.db.session(async |conn| activities::attached(conn, tenant_id, id).await).await?;
    let tombstone = |one: &Attached| Record {
        is_deleted: true,
        ..Record::new(source_id, id.file_external_id(one.ordinal), DocumentType::File, "")
    };
    Ok(attached.iter().filter(|one| one.document_id.is_some()).map(tombstone).collect())
}

/// Has activities remembered again with files that nobody has looked at: those that came before files were read, the newest first, while nothing else waits.
pub async fn keep(env: &Env) -> Result<(), Fault> {
    let mut tx = env.db.begin().await?;
    let some = activities::with_unseen_files(&mut tx, env.clock.sql(), BITE, SILENT_SECS).await?;
    let sent: Vec<(TenantId, RememberActivity)> = some
        .into_iter()
        .map(|(tenant, id)| (TenantId(tenant), RememberActivity { activity_id: ActivityId(id) }))
        .collect();
    queue_of::<RememberActivity>().send_each(&mut tx, &sent).await?;
    tx.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_machines_add_to_a_letter_makes_no_document_and_everything_else_does() {
        for (name, kind, content_id, expected) in [
            ("offer.pdf", Some("application/pdf"), None, None),
            ("offer.pdf", Some("Application/PDF; name=offer.pdf"), Some("<1>"), None),
            ("plan.docx", None, Some("<1>"), None),
            ("voice.wav", Some("audio/wav"), None, None),
            ("holiday.jpg", Some("image/jpeg"), None, None),
            ("run.exe", Some("application/octet-stream"), None, None),
            ("", None, None, None),
            ("logo.png", Some("image/png"), Some("<logo@x>"), Some(LeftOut::Inline)),
            ("logo.gif", Some("image/gif"), Some("<logo@x>"), Some(LeftOut::Inline)),
            ("smime.p7s", Some("application/pkcs7-signature"), None, Some(LeftOut::Machine)),
            ("invite.ics", Some("text/calendar; method=REQUEST"), None, Some(LeftOut::Machine)),
        ] {
            let file = activities::Attachment {
                name: name.into(),
                content_type: kind.map(Into::into),
                content_id: content_id.map(Into::into),
                bytes: 1 << 30,
                blob_key: "a".repeat(64),
            };
            assert_eq!(left_out(&file), expected, "{name} {kind:?}");
        }
    }
}
