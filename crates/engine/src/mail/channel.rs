//! Channels on a mailbox. Each letter that comes after the channel was made, that no rule leaves out and that fits its query is an activity, in the
//! commit of its page. An agent's result is remembered onto the letter's own document.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::mail::query::Query;
use domain::mail::{Letter, Place};
use domain::shown::clipped;
use domain::text::{has_nul, replace_nul_in};
use domain::{
    ActivityId, ActivityType, Caller, ChannelId, Direction, Fault, PersonId, Record, SourceId, SourceStatus, TenantId,
    normal_email,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use store::activities::{Arrival, Attachment, Original};
use store::channels::Channel;
use store::claims::{self, ToRemember};
use store::mail::channels::{self, Found, NewOnMailbox, OnMailbox};
use store::sources::{self, Source};

use super::letters::PREFIX;
use super::settings::mailbox;
use crate::act::{OrMissing as _, checked_name};
use crate::lanes::remember_activity::results;
use crate::memory::{Change, remember as into_memory};
use crate::work::{Lease, Outcome};
use crate::{ActError, Env};

/// The query of a channel for which nobody wrote one.
pub const USUAL_QUERY: &str = "in:inbox is:unread";
/// The name by which such a channel is told apart from those with URLs.
pub const CODE: &str = "gmail";
/// Its name for people.
pub const LABEL: &str = "Gmail letters";
const MOST_QUERY_CHARS: usize = 500;
/// A larger original is a blob.
const INLINE_BYTES: usize = 64 << 10;

/// A channel on a mailbox to be added.
#[derive(Clone, Debug, Default)]
pub struct NewMailChannel {
    pub name: String,
    /// Which letters are events; none: [`USUAL_QUERY`].
    pub query: Option<String>,
    /// The owner of its activities; none: they are everyone's.
    pub person_id: Option<PersonId>,
    /// Makes a contact of every unknown sender.
    pub auto_create_contacts: bool,
}

/// Adds a channel on one of the caller's Gmail sources. Letters that came before are no events.
pub async fn add(env: &Env, caller: &Caller, source_id: SourceId, new: NewMailChannel) -> Result<ChannelId, ActError> {
    let name = checked_name("a channel's", &new.name)?;
    let query = checked_query(new.query.as_deref().unwrap_or_default())?;
    let (_, provider) = mailbox(env, caller, source_id).await?;
    if provider.name != CODE {
        return Err(ActError::conflict(format!("a channel stands on a Gmail source, and this is {}", provider.label)));
    }
    let (tenant_id, person_id, auto_create_contacts) = (caller.tenant_id, new.person_id, new.auto_create_contacts);
    let row = NewOnMailbox { provider_code: CODE, name, person_id, auto_create_contacts, source_id, query };
    let made = env.db.write(async |tx| channels::create(tx, env.clock.sql(), tenant_id, row).await).await;
    let id = made.map_err(|error: store::Error| match error.code().as_deref() {
        Some("23503") => ActError::invalid("there is no such person"),
        _ => error.into(),
    })?;
    tracing::info!(channel.id = %id, source.id = %source_id, "channel {id} on source {source_id} was added by key {}", caller.key_id);
    Ok(id)
}

/// A query that can be asked. An empty one is [`USUAL_QUERY`].
pub(crate) fn checked_query(query: &str) -> Result<&str, ActError> {
    let query = Some(query.trim()).filter(|query| !query.is_empty()).unwrap_or(USUAL_QUERY);
    if query.chars().count() > MOST_QUERY_CHARS || has_nul(query) {
        return Err(ActError::invalid(format!("a query has at most {MOST_QUERY_CHARS} characters")));
    }
    Query::parse(query).map_err(ActError::Invalid)?;
    Ok(query)
}

/// A channel and the mailbox that it stands on, if it is on one.
#[derive(Clone, Debug)]
pub struct Standing {
    pub channel: Channel,
    /// None: it has a URL instead, or its mailbox was forgotten.
    pub mailbox: Option<Source>,
}

impl Standing {
    pub fn is_on_mailbox(&self) -> bool {
        self.channel.settings.source_id.is_some()
    }
}

/// One of the caller's channels, with its mailbox.
pub async fn get(env: &Env, caller: &Caller, id: ChannelId) -> Result<Standing, ActError> {
    let found = env.db.session(async |conn| {
        let Some(channel) = store::channels::get(conn, caller.tenant_id, id).await? else { return Ok(None) };
        let mailbox = match channel.settings.source_id {
            Some(mailbox) => sources::get(conn, caller.tenant_id, SourceId(mailbox)).await?,
            None => None,
        };
        Ok(Some(Standing { channel, mailbox }))
    });
    found.await?.or_missing("channel")
}

/// The caller's mailboxes on which a channel can stand.
pub async fn mailboxes(env: &Env, caller: &Caller) -> Result<Vec<Source>, ActError> {
    let listed = crate::sources::list(env, caller).await?.into_iter();
    Ok(listed.filter(|source| source.provider == CODE && !is_let_go(source)).collect())
}

/// Whether a mailbox is read no more.
pub fn is_let_go(mailbox: &Source) -> bool {
    mailbox.status == SourceStatus::Disconnected
}

/// The arrival of a letter at a channel. None: it is none of its events.
pub(super) async fn arrival(
    env: &Env,
    tenant_id: TenantId,
    channel: &OnMailbox,
    (message_id, letter): (&str, &Letter),
    received_at: DateTime<Utc>,
    files: &[Attachment],
) -> Result<Option<Arrival>, Fault> {
    // A query that this program no longer understands chooses nothing.
    let Ok(query) = Query::parse(channel.query.as_deref().unwrap_or(USUAL_QUERY)) else { return Ok(None) };
    if letter.place == Place::Sent || received_at < channel.created_at || !query.chooses(letter) {
        return Ok(None);
    }
    let body = Bytes::from(letter.payload().to_string());
    let sha256 = Sha256::digest(&body).into();
    let original = match body.len() <= INLINE_BYTES {
        true => Original::Body(body),
        false => Original::Blob(env.blobs.put(&env.db, tenant_id, body).await?),
    };
    let from = letter.from.as_ref().map(|from| from.address.clone()).filter(|from| !from.is_empty());
    let key = from.as_deref().and_then(normal_email);
    let shown =
        |people: &[domain::mail::Correspondent]| people.iter().map(|one| one.shown()).collect::<Vec<_>>().join(", ");
    let mut raw_data = json!({ "source_type": "text", "content": letter.text });
    let mut metadata = json!({
        "message_id": message_id,
        "from": from,
        "from_name": letter.from.as_ref().and_then(|from| from.name.clone()),
        "to": shown(&letter.to),
        "cc": shown(&letter.cc),
        "date": letter.sent_at.or(Some(received_at)).map(|at| at.to_rfc2822()),
        "rfc_message_id": letter.internet_message_id.as_ref().map(|id| format!("<{id}>")),
        "from_key": key,
        "attachments": files,
    });
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|_, value| !matches!(value, Value::Null) && *value != json!("") && *value != json!([]));
    }
    for (name, value) in [("subject", &letter.subject), ("sender", &from)] {
        if let Some(value) = value {
            raw_data[name] = value.as_str().into();
        }
    }
    replace_nul_in(&mut raw_data);
    replace_nul_in(&mut metadata);
    Ok(Some(Arrival {
        id: ActivityId::new(),
        tenant_id,
        channel_id: ChannelId(channel.id),
        person_id: channel.person_id.map(PersonId),
        event_key: Some(clipped(message_id, 400)),
        r#type: ActivityType::Email,
        direction: Direction::Inbound,
        raw_data: raw_data.to_string(),
        metadata: metadata.to_string(),
        content_type: Some("application/json".into()),
        sha256,
        original,
        attachments: files.to_vec(),
        new_contact: key.filter(|_| channel.auto_create_contacts),
    }))
}

/// The text of a letter's document with what agents found.
pub(super) fn with_results(words: String, letter: &Letter, found: &[Found]) -> String {
    let subject = letter.subject.as_deref().unwrap_or_default();
    let found = found.iter().flat_map(|found| results(&found.processed_data, subject, &letter.text));
    let parts: Vec<String> = std::iter::once(words).chain(found).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// Remembers the result of a letter's activity onto the letter's document. One that is not completed adds nothing: its letter was remembered with it.
/// Safe to repeat: the text is made of the letter and of all results, and a letter that changes meanwhile is read again.
pub(crate) async fn remember(
    env: &Env,
    lease: &Lease,
    mailbox_id: SourceId,
    message_id: &str,
    activity: ToRemember,
) -> Result<Outcome, Fault> {
    if activity.processed_data.is_none() {
        return Ok(Outcome::Done);
    }
    let (tenant_id, name) = (lease.tenant_id()?, format!("{PREFIX}{message_id}"));
    let mut conn = env.db.acquire().await?;
    let stored = channels::stored(&mut conn, tenant_id, mailbox_id, &name).await?;
    let found = channels::results(&mut conn, tenant_id, mailbox_id, &[message_id]).await?;
    drop(conn);
    let Some(stored) = stored else { return Ok(Outcome::Done) };
    let Some(letter) = stored.raw_payload.as_ref().and_then(Letter::from_payload) else { return Ok(Outcome::Done) };
    let document_type = stored.document_type.parse().map_err(|odd: String| Fault::Malformed { what: odd })?;
    let text = with_results(letter.in_words(), &letter, &found);
    let contact_id = stored.contact_id;
    let record = Record {
        title: stored.title,
        raw_payload: stored.raw_payload,
        source_version: stored.source_version,
        thread_id: stored.thread_id,
        contact_id: stored.contact_id,
        source_metadata: stored.source_metadata,
        source_created_at: stored.source_created_at,
        source_updated_at: stored.source_updated_at,
        ..Record::new(mailbox_id, stored.external_id, document_type, text)
    };
    let (activity_id, name) = (ActivityId(activity.id), name.as_str());
    let begin = move || async move {
        let mut effect = lease.begin(env).await?;
        if !claims::hold(&mut effect, tenant_id, activity_id).await? {
            return Err(Fault::Stale);
        }
        // The letter may have been forgotten while its text was embedded, and its contact removed.
        let is_there = channels::hold(&mut effect, tenant_id, mailbox_id, name, contact_id).await?;
        is_there.then_some(effect).ok_or_else(|| Fault::Transient(anyhow::anyhow!("the letter has changed meanwhile")))
    };
    let (effect, batch) = into_memory(env, tenant_id, vec![record], begin).await?;
    if batch.records.iter().any(|record| record.change == Change::Superseded) {
        return Err(Fault::Transient(anyhow::anyhow!("the letter has changed meanwhile")));
    }
    effect.commit().await
}
