//! Notes, tasks and meetings that a person writes. There is nothing to transcribe and nobody has to process them, so they are completed at once; what the
//! rules find in them is their result. Memory gets them like every other activity.

use chrono::{DateTime, Datelike as _, SecondsFormat, Utc};
use domain::shown::clipped;
use domain::text::has_nul;
use domain::{ActivityId, ActivityType, Caller, ClientId, ContactId, Direction, Op, ProcessingStatus};
use serde_json::{Map, Value, json};
use store::activities::{self, Activity};
use store::written::{self, NewActivity};
use store::{clients, contacts};

use crate::enrich::rules;
use crate::{ActError, Env};

/// The types that people write.
pub const KINDS: [ActivityType; 3] = [ActivityType::Note, ActivityType::Task, ActivityType::Meeting];
pub const MOST_TITLE_CHARS: usize = 200;
pub const MOST_TEXT_CHARS: usize = 100_000;

/// A note, a task or a meeting as a person wrote it.
#[derive(Clone, Debug)]
pub struct Written {
    /// Made by the caller: sent again, it is the same activity. None: each is a new one.
    pub id: Option<ActivityId>,
    pub r#type: ActivityType,
    pub title: String,
    pub text: String,
    /// When the meeting is or was, when the task is due, or the time that the note is about.
    pub at: Option<DateTime<Utc>>,
    /// The contact that it is about.
    pub contact_id: Option<ContactId>,
    /// The client that it is about.
    pub client_id: Option<ClientId>,
}

/// The activity that was written.
#[derive(Clone, Debug)]
pub struct Added {
    pub activity: Activity,
    /// `false`: it was sent before.
    pub is_new: bool,
}

impl Written {
    /// The title and the text in the form in which they are stored. An error says what is wrong.
    fn checked(&self) -> Result<(String, String), String> {
        if !KINDS.contains(&self.r#type) {
            return Err("a person writes a note, a task or a meeting".into());
        }
        if has_nul(&self.title) || has_nul(&self.text) {
            return Err("it has a NUL character".into());
        }
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = domain::text::normalise(&self.text).trim().to_owned();
        if title.is_empty() && text.is_empty() {
            return Err("write a title or a text".into());
        }
        for (what, given, most) in [("title", &title, MOST_TITLE_CHARS), ("text", &text, MOST_TEXT_CHARS)] {
            if given.chars().count() > most {
                return Err(format!("the {what} has more than {} characters", domain::shown::number(most as i64)));
            }
        }
        if self.at.is_some_and(|at| !(1900..=2200).contains(&at.year())) {
            return Err("its time is between 1900 and 2200".into());
        }
        Ok((title, text))
    }
}

/// Writes a note, a task or a meeting, which belongs to the person who wrote it. Safe to repeat with the same id.
pub async fn add(env: &Env, caller: &Caller, new: Written) -> Result<Added, ActError> {
    let (title, text) = new.checked().map_err(ActError::Invalid)?;
    let tenant_id = caller.tenant_id;
    let named = env.db.read(caller, async |tx| {
        let contact = match new.contact_id {
            Some(id) => contacts::get(tx, tenant_id, id).await?.map(|contact| contact.called()),
            None => None,
        };
        let client = match new.client_id {
            Some(id) => clients::of_record(tx, id).await?.zip(clients::name_of(tx, id).await?),
            None => None,
        };
        Ok((contact, client))
    });
    let (contact, client) = named.await?;
    if new.contact_id.is_some() && contact.is_none() {
        return Err(ActError::NotFound("contact"));
    }
    if new.client_id.is_some() && client.is_none() {
        return Err(ActError::NotFound("client"));
    }
    let about: Vec<String> = contact.into_iter().chain(client.as_ref().map(|(_, name)| name.clone())).collect();
    let mut metadata = Map::new();
    metadata.insert("written_by".into(), clipped(&caller.key_name, 60).into());
    if let Some(at) = new.at {
        metadata.insert("at".into(), at.to_rfc3339_opts(SecondsFormat::Secs, true).into());
    }
    if !about.is_empty() {
        metadata.insert("about".into(), clipped(&about.join(", "), 300).into());
    }
    let id = new.id.unwrap_or_else(ActivityId::new);
    let row = NewActivity {
        id,
        r#type: new.r#type,
        direction: Direction::Inbound,
        person_id: caller.person_id,
        contact_id: new.contact_id,
        status: ProcessingStatus::Completed,
        processed_data: Some(json!({ "facts": rules::of_text(&title, &text)["facts"] })),
        raw_data: raw_data(&title, &text),
        metadata: Value::Object(metadata),
    };
    let written = env.db.write(async |tx| -> Result<Added, ActError> {
        if let Some(contact) = new.contact_id {
            crate::contacts::hold(tx, tenant_id, &[contact.0]).await?;
        }
        let is_new = !written::insert(tx, tenant_id, std::slice::from_ref(&row)).await?.is_empty();
        if is_new {
            if let Some((client, _)) = &client {
                written::link_client(tx, tenant_id, id, *client).await?;
            }
            tx.notify_all(activities::notices(tenant_id, &[id.0], Op::Insert));
        }
        let taken = || ActError::conflict("that id is taken: leave it out, or open the form again");
        let activity = activities::get(tx, tenant_id, id).await?.ok_or_else(taken)?;
        // Who may write may not read what others wrote.
        let is_theirs =
            activity.channel_id.is_none() && activity.metadata.get("written_by") == row.metadata.get("written_by");
        if !is_new && !is_theirs {
            return Err(taken());
        }
        Ok(Added { activity, is_new })
    });
    written.await
}

fn raw_data(title: &str, text: &str) -> Value {
    let mut raw = json!({ "source_type": "text", "content": text });
    if !title.is_empty() {
        raw["subject"] = title.into();
    }
    raw
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(title: &str, text: &str) -> Written {
        Written {
            id: None,
            r#type: ActivityType::Note,
            title: title.into(),
            text: text.into(),
            at: None,
            contact_id: None,
            client_id: None,
        }
    }

    #[test]
    fn a_note_needs_some_words_and_not_too_many() {
        assert_eq!(note("  A \n title ", " Some\r\ntext ").checked(), Ok(("A title".into(), "Some\ntext".into())));
        assert!(note("", "text").checked().is_ok() && note("title", "").checked().is_ok());
        for (odd, why) in [
            (note(" ", "\n"), "write a title or a text"),
            (note("a\0b", "text"), "it has a NUL character"),
            (note("a", "b\0"), "it has a NUL character"),
            (note(&"é".repeat(201), ""), "the title has more than 200 characters"),
            (note("", &"x".repeat(100_001)), "the text has more than 100,000 characters"),
            (Written { r#type: ActivityType::Call, ..note("a", "b") }, "a person writes a note, a task or a meeting"),
            (
                Written { at: DateTime::from_timestamp(1 << 40, 0), ..note("a", "b") },
                "its time is between 1900 and 2200",
            ),
        ] {
            assert_eq!(odd.checked(), Err(why.to_owned()));
        }
    }

    #[test]
    fn a_title_is_the_subject() {
        assert_eq!(raw_data("", "b"), json!({ "source_type": "text", "content": "b" }));
        assert_eq!(raw_data("a", "b"), json!({ "source_type": "text", "content": "b", "subject": "a" }));
    }
}
