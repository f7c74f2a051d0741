//! Activities: inbound events with their untouched originals. One event of a channel is one row, however often it is delivered.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::{ActivityId, ActivityType, BlobKey, ChannelId, Direction, PersonId, TenantId};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// An event on its way in. Its id is made on arrival, so that inserting it again is known to be the same.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub id: ActivityId,
    pub tenant_id: TenantId,
    pub channel_id: ChannelId,
    pub person_id: Option<PersonId>,
    /// What makes a redelivery the same event; none: every delivery is a new one.
    pub event_key: Option<String>,
    pub r#type: ActivityType,
    pub direction: Direction,
    /// JSON that PostgreSQL takes: checked before.
    pub raw_data: String,
    pub metadata: String,
    pub content_type: Option<String>,
    pub sha256: [u8; 32],
    pub original: Original,
}

/// The untouched original of an event.
#[derive(Clone, Debug)]
pub enum Original {
    /// Beside the row.
    Body(Bytes),
    /// In the blob store, where it has to be before its row commits.
    Blob(BlobKey),
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The first delivery's id for a redelivery.
    pub id: ActivityId,
    /// This delivery was the first.
    pub is_new: bool,
}

/// Inserts arrivals; `None` in an arrival's place when its event is neither new nor there any more, which is worth another try.
/// Safe to repeat with the same arrivals, also while the first try is still in doubt. The insert's trigger sends their messages.
pub async fn insert_group(conn: &mut PgConnection, group: &[&Arrival]) -> Result<Vec<Option<Stored>>> {
    fn all<'a, T>(group: &[&'a Arrival], of: impl Fn(&'a Arrival) -> T) -> Vec<T> {
        group.iter().map(|arrival| of(arrival)).collect()
    }
    let inserted: Vec<Uuid> = sqlx::query_scalar(include_str!("sql/activity_insert.sql"))
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
        .fetch_all(&mut *conn)
        .await?;
    let new: HashSet<Uuid> = inserted.into_iter().collect();
    let known = if new.len() == group.len() { HashMap::new() } else { known(conn, group, &new).await? };
    let stored = group.iter().map(|arrival| {
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
    });
    Ok(stored.collect())
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
        sqlx::query_as(include_str!("sql/activity_known.sql")).bind(channels).bind(keys).fetch_all(conn).await?;
    Ok(rows.into_iter().map(|(channel, key, id)| ((channel, key), ActivityId(id))).collect())
}

/// An activity as pages and programs see it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Activity {
    pub id: Uuid,
    pub r#type: String,
    pub direction: String,
    pub processing_status: String,
    pub raw_data: serde_json::Value,
    pub processed_data: Option<serde_json::Value>,
    pub metadata: serde_json::Value,
    #[sqlx(rename = "provider_id")]
    pub channel_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<Option<Activity>> {
    Ok(sqlx::query_as(
        "select id, type, direction, processing_status, raw_data, processed_data, metadata, provider_id, created_at, updated_at
         from public.activities where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_optional(conn)
    .await?)
}

pub async fn list_newest(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<Activity>> {
    Ok(sqlx::query_as(
        "select id, type, direction, processing_status, raw_data, processed_data, metadata, provider_id, created_at, updated_at
         from public.activities where tenant_id = $1 order by created_at desc, id desc limit $2",
    )
    .bind(tenant_id.0)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// How many arrived in each of the last 60 minutes of the clock, the oldest first.
pub async fn count_per_minute(
    conn: &mut PgConnection,
    now: Option<DateTime<Utc>>,
    tenant_id: TenantId,
) -> Result<Vec<i64>> {
    Ok(sqlx::query_scalar(include_str!("sql/activities_per_minute.sql"))
        .bind(tenant_id.0)
        .bind(now)
        .fetch_all(conn)
        .await?)
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

/// Events of today, and whose turn it is.
#[derive(Clone, Copy, Debug, Default, sqlx::FromRow)]
pub struct Flow {
    pub today: i64,
    /// For an agent to take them.
    pub waiting: i64,
    /// Given up: they wait for a person.
    pub failed: i64,
    pub has_any: bool,
}

pub async fn flow(conn: &mut PgConnection, now: Option<DateTime<Utc>>, tenant_id: TenantId) -> Result<Flow> {
    Ok(sqlx::query_as(include_str!("sql/activities_flow.sql")).bind(tenant_id.0).bind(now).fetch_one(conn).await?)
}

/// An event that memory does not have yet.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Unremembered {
    pub id: Uuid,
    pub r#type: String,
    pub processing_status: String,
    pub subject: String,
    pub from: String,
    /// Empty when its channel is gone.
    pub source_name: String,
    pub created_at: DateTime<Utc>,
}

/// Of the newest events those that are no document yet: they wait for their lane, or for an agent that can hear them.
pub async fn unremembered(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<Unremembered>> {
    Ok(sqlx::query_as(include_str!("sql/activities_unremembered.sql"))
        .bind(tenant_id.0)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}
