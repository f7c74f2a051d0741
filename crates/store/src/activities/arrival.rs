//! Events as they arrive: stored once, with their files and their untouched originals.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::{ActivityId, ActivityType, BlobKey, ChannelId, Direction, DocumentStatus, Op, PersonId, TenantId};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::notices;
use crate::db::{Tx, TxOn};
use crate::{Result, contacts};

/// An event on its way in. Its id is made on arrival, so that inserting it a second time is recognised.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub id: ActivityId,
    pub tenant_id: TenantId,
    pub channel_id: ChannelId,
    pub person_id: Option<PersonId>,
    /// The key by which a redelivery is recognised; none: every delivery is a new event.
    pub event_key: Option<String>,
    pub r#type: ActivityType,
    pub direction: Direction,
    /// JSON, checked to be what PostgreSQL accepts.
    pub raw_data: String,
    pub metadata: String,
    pub content_type: Option<String>,
    pub sha256: [u8; 32],
    pub original: Original,
    pub attachments: Vec<Attachment>,
    /// The address of which a contact is created if there is none.
    pub new_contact: Option<String>,
}

/// A file that came with an event; its bytes are in the blob store before the row commits.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Attachment {
    /// The sender's name for it; it is shown and used for nothing else.
    pub name: String,
    pub content_type: Option<String>,
    pub content_id: Option<String>,
    pub bytes: i64,
    pub blob_key: String,
}

/// The untouched original of an event.
#[derive(Clone, Debug)]
pub enum Original {
    /// Beside the row.
    Body(Bytes),
    /// A blob, which is stored before the row commits.
    Blob(BlobKey),
}

/// The outcome of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The id of the activity; for a redelivery that of the first delivery.
    pub id: ActivityId,
    /// Whether this delivery was the first.
    pub is_new: bool,
}

/// Inserts arrivals in a transaction that also does something else. See [`insert_group`].
pub async fn insert_beside(tx: &mut Tx, group: &[&Arrival]) -> Result<Vec<Option<Stored>>> {
    insert_group(tx.on_session(), group).await
}

/// Inserts arrivals, and tells of the new ones after the commit. `None` in an arrival's place: its event is neither new nor there any more, which is
/// worth another try. Safe to repeat with the same arrivals, also while the outcome of the first try is unknown.
pub async fn insert_group(tx: &mut TxOn<'_>, group: &[&Arrival]) -> Result<Vec<Option<Stored>>> {
    fn all<'a, T>(group: &[&'a Arrival], of: impl Fn(&'a Arrival) -> T) -> Vec<T> {
        group.iter().map(|arrival| of(arrival)).collect()
    }
    let new_contacts: Vec<_> =
        group.iter().filter_map(|a| Some((a.tenant_id, a.new_contact.as_deref()?, a.person_id))).collect();
    if !new_contacts.is_empty() {
        contacts::ensure_all(tx, &new_contacts).await?;
    }
    let inserted: Vec<Uuid> = sqlx::query_scalar(include_str!("../sql/activity_insert.sql"))
        .bind(all(group, |a| a.id.0))
        .bind(all(group, |a| a.tenant_id.0))
        .bind(all(group, |a| a.r#type.as_str()))
        .bind(all(group, |a| a.direction.as_str()))
        .bind(all(group, |a| a.person_id.map(|person| person.0)))
        .bind(all(group, |a| a.raw_data.as_str()))
        .bind(all(group, |a| a.metadata.as_str()))
        .bind(all(group, |a| a.channel_id.0))
        .bind(all(group, |a| a.event_key.as_deref()))
        .bind(all(group, |a| a.content_type.as_deref()))
        .bind(all(group, |a| &a.sha256[..]))
        .bind(all(group, |a| match &a.original {
            Original::Body(body) => Some(&body[..]),
            Original::Blob(_) => None,
        }))
        .bind(all(group, |a| match &a.original {
            Original::Body(_) => None,
            Original::Blob(key) => Some(key.to_string()),
        }))
        .fetch_all(&mut **tx)
        .await?;
    let new: HashSet<Uuid> = inserted.into_iter().collect();
    for arrival in group.iter().filter(|a| !a.attachments.is_empty() && new.contains(&a.id.0)) {
        attach(tx, arrival).await?;
    }
    let known = if new.len() == group.len() { HashMap::new() } else { known(tx, group, &new).await? };
    let stored: Vec<Option<Stored>> = group
        .iter()
        .map(|arrival| {
            if new.contains(&arrival.id.0) {
                return Some(Stored { id: arrival.id, is_new: true });
            }
            match &arrival.event_key {
                Some(key) => {
                    let first = known.get(&(arrival.channel_id.0, key.clone()));
                    first.map(|id| Stored { id: *id, is_new: *id == arrival.id })
                }
                // Without a key it can only have met itself: a commit whose answer was lost.
                None => Some(Stored { id: arrival.id, is_new: true }),
            }
        })
        .collect();
    let mut told: HashMap<TenantId, Vec<Uuid>> = HashMap::new();
    for (arrival, stored) in group.iter().zip(&stored) {
        if let Some(stored) = stored.filter(|stored| stored.is_new) {
            told.entry(arrival.tenant_id).or_default().push(stored.id.0);
        }
    }
    for (tenant_id, ids) in told {
        tx.notify_all(notices(tenant_id, &ids, Op::Insert));
    }
    Ok(stored)
}

async fn attach(conn: &mut PgConnection, arrival: &Arrival) -> Result<()> {
    let files = &arrival.attachments;
    sqlx::query(
        "insert into tributary.activity_attachments (tenant_id, activity_id, ordinal, name, content_type, content_id, bytes, blob_key)
         select $1, $2, f.ordinal, f.name, f.content_type, f.content_id, f.bytes, f.blob_key
         from unnest($3::text[], $4::text[], $5::text[], $6::int8[], $7::text[]) with ordinality
             f (name, content_type, content_id, bytes, blob_key, ordinal)",
    )
    .bind(arrival.tenant_id.0)
    .bind(arrival.id.0)
    .bind(files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>())
    .bind(files.iter().map(|file| file.content_type.as_deref()).collect::<Vec<_>>())
    .bind(files.iter().map(|file| file.content_id.as_deref()).collect::<Vec<_>>())
    .bind(files.iter().map(|file| file.bytes).collect::<Vec<_>>())
    .bind(files.iter().map(|file| file.blob_key.as_str()).collect::<Vec<_>>())
    .execute(conn)
    .await?;
    Ok(())
}

/// A file that came with an event, and the document that was made of it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Attached {
    /// Its place among the event's files.
    pub ordinal: i32,
    #[sqlx(flatten)]
    pub file: Attachment,
    /// None: nobody has looked at it yet, it is of a kind that makes none, or its document is deleted.
    pub document_id: Option<Uuid>,
    status: Option<String>,
}

impl Attached {
    /// How far its document is read.
    pub fn status(&self) -> Option<DocumentStatus> {
        self.status.as_deref()?.parse().ok()
    }
}

/// The files of an event in their order, with their documents.
pub async fn attached(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<Vec<Attached>> {
    Ok(sqlx::query_as(include_str!("../sql/attachments_documents.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .fetch_all(conn)
        .await?)
}

/// Writes that the files of an event were looked at: they have their documents, as far as they make any.
pub async fn mark_remembered(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: ActivityId,
) -> Result<()> {
    sqlx::query(
        "update tributary.activity_attachments set remembered_at = coalesce($3, now())
         where tenant_id = $1 and activity_id = $2 and remembered_at is null",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Lists activities of all tenants with files that nobody has looked at for `secs`, the newest first. None while others wait to be remembered.
pub async fn with_unseen_files(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    limit: i64,
    secs: f64,
) -> Result<Vec<(Uuid, Uuid)>> {
    let sql = include_str!("../sql/attachments_unremembered.sql");
    Ok(sqlx::query_as(sql).bind(at).bind(limit).bind(secs).fetch_all(conn).await?)
}

pub async fn attachments(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<Vec<Attachment>> {
    Ok(sqlx::query_as(
        "select name, content_type, content_id, bytes, blob_key from tributary.activity_attachments
         where tenant_id = $1 and activity_id = $2 order by ordinal",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_all(conn)
    .await?)
}

async fn known(
    conn: &mut PgConnection,
    group: &[&Arrival],
    new: &HashSet<Uuid>,
) -> Result<HashMap<(Uuid, String), ActivityId>> {
    let met = group.iter().filter(|arrival| !new.contains(&arrival.id.0));
    let (channels, keys): (Vec<Uuid>, Vec<&str>) =
        met.filter_map(|arrival| Some((arrival.channel_id.0, arrival.event_key.as_deref()?))).unzip();
    let rows: Vec<(Uuid, String, Uuid)> =
        sqlx::query_as(include_str!("../sql/activity_known.sql")).bind(channels).bind(keys).fetch_all(conn).await?;
    Ok(rows.into_iter().map(|(channel, key, id)| ((channel, key), ActivityId(id))).collect())
}

/// The untouched original of an event: here, or in the blob store.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Payload {
    pub content_type: Option<String>,
    pub sha256: Vec<u8>,
    pub body: Option<Vec<u8>>,
    pub blob_key: Option<String>,
}

pub async fn payload(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<Option<Payload>> {
    Ok(sqlx::query_as(
        "select content_type, sha256, body, blob_key from tributary.activity_payloads where tenant_id = $1 and activity_id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_optional(conn)
    .await?)
}
