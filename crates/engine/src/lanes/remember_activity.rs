//! Remembers activities as one document each: on arrival with the content of the event, and again with an agent's results. The files that came with it are
//! documents of their own (`files::attached`), in the same commit. A trigger (`tributary.send_remember_activity`) sends the items; `memory::remember`
//! writes the documents.

use chrono::{DateTime, Utc};
use domain::{ActivityId, ActivityType, Direction, DocumentType, Fault, Record, SourceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::claims::{self, ToRemember};
use store::crash::{self, Point};
use store::memory::removed;
use store::{activities, sources};

use crate::Env;
use crate::files::attached;
use crate::mail::channel;
use crate::memory::{Change, remember};
use crate::work::{Lane, Lease, Outcome};

#[derive(Serialize, Deserialize)]
pub struct RememberActivity {
    pub activity_id: ActivityId,
}

impl Lane for RememberActivity {
    const NAME: &'static str = store::activities::REMEMBERED_BY;
    const BATCH: u32 = 16;

    /// Safe to repeat: the document is named after the activity, and an older state of it never overwrites a newer one.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let tenant_id = lease.tenant_id()?;
        let mut conn = env.db.acquire().await?;
        let Some(activity) = claims::to_remember(&mut conn, tenant_id, self.activity_id).await? else {
            return Ok(Outcome::Cancel("the activity is gone"));
        };
        let source_id = match activity.source_id {
            Some(channel) => SourceId(channel),
            None => sources::ensure_manual(&mut conn, tenant_id).await?,
        };
        let (at, activity_id) = (env.clock.sql(), self.activity_id);
        if let (Some(mailbox), Some(message_id)) = (activity.mailbox_id, activity.event_key.clone()) {
            // The files of a letter have documents of its mailbox's.
            activities::mark_remembered(&mut conn, at, tenant_id, activity_id).await?;
            drop(conn);
            return channel::remember(env, lease, SourceId(mailbox), &message_id, activity).await;
        }
        let files = activities::attached(&mut conn, tenant_id, activity_id).await?;
        let mut of_files = attached::records(source_id, &activity, &files);
        let record = record(source_id, activity);
        let names: Vec<String> = of_files.iter().chain([&record]).map(|record| record.external_id.clone()).collect();
        let kept_out = match of_files.is_empty() {
            true => Vec::new(),
            false => removed::kept_out(&mut conn, tenant_id, source_id, &names).await?,
        };
        drop(conn);
        // With the activity's document its files stay deleted, also one that had no document by then.
        let is_kept_out = kept_out.contains(&record.external_id);
        of_files.retain(|file| !is_kept_out || kept_out.contains(&file.external_id));
        let has_files = !of_files.is_empty();
        let records = std::iter::once(record).chain(of_files).collect();
        let begin = move || async move {
            let mut effect = lease.begin(env).await?;
            // It may have been forgotten while its text was embedded. From here on its removal waits for this commit, and then finds the document.
            match claims::hold(&mut effect, tenant_id, activity_id).await? {
                true => Ok(effect),
                false => Err(Fault::Stale),
            }
        };
        let (mut effect, batch) = remember(env, tenant_id, records, begin).await?;
        let change = batch.records.first().map(|of_activity| of_activity.change);
        // Deleted or let in meanwhile, or linked to another contact: its files would be what it is not.
        let has_moved_on = change == Some(Change::Superseded) || (change == Some(Change::KeptOut)) != is_kept_out;
        if has_files && has_moved_on {
            return Err(Fault::Transient(anyhow::anyhow!("the activity or its document has changed meanwhile")));
        }
        if !files.is_empty() {
            activities::mark_remembered(&mut effect, at, tenant_id, activity_id).await?;
            crash::at(Point::ActivityFilesWritten)?;
        }
        effect.commit().await
    }
}

/// Makes a document of an activity: parties and text, then the agent's summary and facts.
fn record(source_id: SourceId, activity: ToRemember) -> Record {
    let field =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let (raw, done) = (&activity.raw_data, activity.processed_data.clone().unwrap_or_default());
    let mut parts = Vec::new();
    let parties: Vec<String> = [("From", "from"), ("To", "to")]
        .into_iter()
        .map(|(label, name)| (label, field(&activity.metadata, name)))
        .filter(|(_, party)| !party.is_empty())
        .map(|(label, party)| format!("{label}: {party}"))
        .collect();
    parts.push(parties.join("\n"));
    let (at, written) = written(&activity);
    parts.push(written);
    let subject = field(raw, "subject");
    let mut content = field(raw, "content");
    if field(raw, "source_type") != "text" {
        content.clear();
    } else if field(raw, "format").contains("html") {
        content = domain::text::html_to_text(&content).1;
    }
    let said = [content, field(&done, "transcript")];
    let results = results(&done, &subject, &said.join(" "));
    parts.extend(said);
    parts.extend(results);
    parts.retain(|part| !part.is_empty());
    let title = match subject.is_empty() {
        true => named_by(activity.r#type, activity.direction, &field(&activity.metadata, "from")),
        false => subject,
    };
    Record {
        title: Some(title),
        raw_payload: Some(
            serde_json::json!({ "raw_data": activity.raw_data, "processed_data": activity.processed_data }),
        ),
        source_version: Some(activity.updated_at.timestamp_micros()),
        contact_id: activity.contact_id,
        source_metadata: activity.metadata,
        source_created_at: Some(at.unwrap_or(activity.created_at)),
        source_updated_at: Some(activity.updated_at),
        ..Record::new(
            source_id,
            ActivityId(activity.id).external_id(),
            DocumentType::Activity(activity.r#type),
            parts.join("\n\n"),
        )
    }
}

/// The parts of a text that say what an agent found: a summary that is not the beginning of what was said, and facts.
pub(crate) fn results(done: &Value, subject: &str, said: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let summary = done.get("summary").and_then(Value::as_str).unwrap_or_default().trim();
    if !summary.is_empty() && !repeats(summary, subject, said) {
        parts.push(format!("## Summary\n\n{summary}"));
    }
    let facts: Vec<String> =
        done.get("facts").and_then(Value::as_array).into_iter().flatten().filter_map(fact).collect();
    if !facts.is_empty() {
        parts.push(format!("## Facts\n\n{}", facts.join("\n")));
    }
    parts
}

/// Of what a person wrote: the time that it is about, and lines that say when and about whom. An event of a channel may have fields of the same names, which
/// mean something else.
fn written(activity: &ToRemember) -> (Option<DateTime<Utc>>, String) {
    let field =
        |name: &str| activity.metadata.get(name).and_then(Value::as_str).filter(|_| activity.source_id.is_none());
    if field("written_by").is_none() {
        return (None, String::new());
    }
    let at = field("at").and_then(|at| at.parse::<DateTime<Utc>>().ok());
    let label = if activity.r#type == ActivityType::Task { "Due" } else { "When" };
    let when = at.map(|at| format!("{label}: {}", at.format("%-d %B %Y, %H:%M UTC")));
    let about = field("about").map(|about| format!("About: {about}"));
    (at, when.into_iter().chain(about).collect::<Vec<_>>().join("\n"))
}

/// Whether a summary repeats the text: without a model it is the beginning of it.
fn repeats(summary: &str, subject: &str, said: &str) -> bool {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let summary = flat(summary);
    format!("{}: {}", flat(subject), flat(said)).contains(summary.trim_end_matches('…'))
}

/// A fact as a line of a list. Agents send strings, or objects whose fields hold the text.
fn fact(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => fields.values().filter_map(Value::as_str).collect::<Vec<_>>().join(": "),
        _ => return None,
    };
    (!text.trim().is_empty()).then(|| format!("- {}", text.trim()))
}

/// The title of an activity without a subject.
fn named_by(r#type: ActivityType, direction: Direction, from: &str) -> String {
    let kind = match r#type {
        ActivityType::Email => "Email",
        ActivityType::Call => "Call",
        ActivityType::Sms => "SMS",
        ActivityType::Meeting => "Meeting",
        ActivityType::Note => "Note",
        ActivityType::Task => "Task",
        ActivityType::Whatsapp => "WhatsApp message",
        ActivityType::Other => "Event",
    };
    match (from.is_empty(), direction) {
        (true, _) => kind.to_owned(),
        (false, Direction::Outbound) => format!("{kind} by {from}"),
        (false, Direction::Inbound) => format!("{kind} from {from}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn activity(raw: Value, done: Option<Value>, metadata: Value) -> ToRemember {
        ToRemember {
            id: uuid::Uuid::nil(),
            r#type: ActivityType::Call,
            direction: Direction::Inbound,
            contact_id: None,
            raw_data: raw,
            processed_data: done,
            metadata,
            created_at: Utc::now(),
            updated_at: Utc::now(),
            source_id: None,
            mailbox_id: None,
            event_key: None,
        }
    }

    #[test]
    fn an_activity_reads_as_a_document() {
        let raw = json!({ "source_type": "text", "content": "<p>Hello</p>", "format": "text/html" });
        let done = json!({ "summary": "They greet.", "facts": ["likes tea", { "kind": "phone", "value": "+1" }, 7] });
        let said = record(SourceId::new(), activity(raw, Some(done), json!({ "from": "+15550100" })));
        assert_eq!(said.title.as_deref(), Some("Call from +15550100"));
        assert_eq!(
            said.text,
            "From: +15550100\n\nHello\n\n## Summary\n\nThey greet.\n\n## Facts\n\n- likes tea\n- phone: +1"
        );
        assert_eq!(said.document_type, DocumentType::Activity(ActivityType::Call));
        assert_eq!(ActivityId::from_external_id(&said.external_id), Some(ActivityId(uuid::Uuid::nil())));
    }

    #[test]
    fn a_summary_that_is_how_the_text_begins_is_not_said_twice() {
        for content in ["We  meet\non Monday.", &"One two three four. ".repeat(50)] {
            let raw = json!({ "source_type": "text", "subject": "Plan", "content": content });
            let done = crate::enrich::rules::process(&raw);
            assert!(done["summary"].as_str().is_some_and(|summary| summary.starts_with("Plan: ")));
            let said = record(SourceId::new(), activity(raw, Some(done), json!({})));
            assert_eq!(said.text, content.trim());
        }
    }

    #[test]
    fn what_a_person_wrote_says_when_and_about_whom() {
        let raw = json!({ "source_type": "text", "subject": "Kick-off", "content": "We begin." });
        let told = json!({ "written_by": "Ben", "at": "2026-05-03T14:00:00Z", "about": "Ann Lark, Larkfield" });
        let said = record(SourceId::new(), activity(raw.clone(), None, told.clone()));
        assert_eq!(said.text, "When: 3 May 2026, 14:00 UTC\nAbout: Ann Lark, Larkfield\n\nWe begin.");
        assert_eq!(said.source_created_at, "2026-05-03T14:00:00Z".parse().ok());
        // The fields of a channel's sender are its own.
        let theirs = ToRemember { source_id: Some(uuid::Uuid::nil()), ..activity(raw, None, told) };
        assert_eq!(record(SourceId::new(), theirs).text, "We begin.");
    }

    #[test]
    fn a_recording_nobody_has_heard_yet_is_known_by_its_subject_and_parties() {
        let raw = json!({ "source_type": "url", "content": "https://example.com/a.wav", "subject": "Voicemail" });
        let said = record(SourceId::new(), activity(raw, None, json!({ "to": "+15550111" })));
        assert_eq!((said.title.as_deref(), said.text.as_str()), (Some("Voicemail"), "To: +15550111"));
    }
}
