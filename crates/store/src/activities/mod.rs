//! Activities: inbound events with their untouched originals. One event of a channel is one row, however often it is delivered.

mod acts;
mod arrival;
mod list;

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{ActivityId, ActivityType, Direction, KeyId, Notice, Op, PersonId, ProcessingStatus, TenantId};
use serde::Serialize;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::Result;
use crate::queue::MOST_COUNTED;

pub use acts::{link, match_again, retry, skip};
pub use arrival::{
    Arrival, Attached, Attachment, Original, Payload, Stored, attached, attachments, insert_beside, insert_group,
    mark_remembered, payload, with_unseen_files,
};
pub(crate) use list::listed;
pub use list::{Filter, LOOKED_AT, Position, Wanted, get_all, last_looked_at, list, position};

/// The lane that remembers activities. Triggers of the table send its messages, for every writer: when activities with text or files are inserted, and
/// when some are completed.
pub const REMEMBERED_BY: &str = "remember_activity";

/// Returns the notices that these activities were inserted or have a result, for the transaction that wrote them: readers hear which, and the
/// lane that remembers them is woken.
pub fn notices(tenant_id: TenantId, ids: &[Uuid], op: Op) -> Vec<Notice> {
    if ids.is_empty() {
        return Vec::new();
    }
    let mut notices = vec![Notice::lane(Some(tenant_id), REMEMBERED_BY, Op::Insert)];
    notices.extend(Notice::activities(tenant_id, ids, op));
    notices
}

/// An activity as pages and programs see it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Activity {
    pub id: Uuid,
    #[sqlx(try_from = "String")]
    pub r#type: ActivityType,
    #[sqlx(try_from = "String")]
    pub direction: Direction,
    #[sqlx(try_from = "String")]
    pub processing_status: ProcessingStatus,
    pub raw_data: serde_json::Value,
    pub processed_data: Option<serde_json::Value>,
    pub metadata: serde_json::Value,
    #[sqlx(rename = "provider_id")]
    pub channel_id: Option<Uuid>,
    pub contact_id: Option<i64>,
    /// The person who owns it; none: everyone.
    #[sqlx(rename = "sales_id")]
    pub person_id: Option<i64>,
    /// The number of times that agents have claimed it.
    #[sqlx(rename = "lock_epoch")]
    pub tries: i32,
    /// It is a dead letter: it failed for good and waits for a person.
    pub is_dead: bool,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Activity {
    /// The address it carries: the sender's, or the receiver's of an outbound one.
    pub fn party(&self) -> Option<&str> {
        let names = if self.direction == Direction::Outbound { ["to_key", "to"] } else { ["from_key", "from"] };
        names.into_iter().find_map(|name| {
            let value = self.metadata.get(name)?;
            value.as_str().or_else(|| value.get(0)?.as_str())
        })
    }

    /// Its place in lists.
    pub fn position(&self) -> Position {
        Position { created_at: self.created_at, id: self.id }
    }
}

/// The columns of an [`Activity`] beside its texts.
const STATE: &str = "a.id, a.type, a.direction, a.processing_status, a.provider_id, a.contact_id, a.sales_id, a.lock_epoch, a.created_at, a.updated_at,
    a.processing_status = 'failed' and exists (
        select from public.activity_failures f where f.tenant_id = a.tenant_id and f.original_activity_id = a.id) as is_dead";

pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<Option<Activity>> {
    let sql = format!(
        "select {STATE}, a.raw_data, a.processed_data, a.metadata from public.activities a where a.tenant_id = $1 and a.id = $2"
    );
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(tenant_id.0).bind(id.0).fetch_optional(conn).await?)
}

/// Returns the raw activities that arrived within `new_for`, of the newest ones.
pub async fn new_and_raw(
    conn: &mut PgConnection,
    now: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    new_for: Duration,
) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(include_str!("../sql/activities_new_and_raw.sql"))
        .bind(tenant_id.0)
        .bind(now)
        .bind(new_for.as_secs_f64())
        .fetch_all(conn)
        .await?)
}

/// The facts that decide which agents see an activity.
#[derive(Clone, Debug)]
pub struct Opening {
    pub created_at: DateTime<Utc>,
    /// None: everyone's.
    pub owner: Option<OpeningOwner>,
    /// It waits for an agent: only then can it be open to others than its owner.
    pub is_raw: bool,
    /// The key that claimed it last.
    pub claimed_key: Option<KeyId>,
}

/// An activity's owner, and the owner's rule about others who may process it.
#[derive(Clone, Copy, Debug)]
pub struct OpeningOwner {
    pub id: PersonId,
    pub stale_threshold_minutes: i32,
    pub allow_remote_processing: bool,
}

/// Loads for some of a tenant's activities what decides which agents see them.
pub async fn openings(conn: &mut PgConnection, tenant_id: TenantId, ids: &[Uuid]) -> Result<HashMap<Uuid, Opening>> {
    type Row = (Uuid, DateTime<Utc>, Option<i64>, Option<i32>, Option<bool>, bool, Option<Uuid>);
    let rows: Vec<Row> = sqlx::query_as(
        "select a.id, a.created_at, a.sales_id, s.stale_threshold_minutes, s.allow_remote_processing,
             a.processing_status = 'raw', a.claimed_key
         from public.activities a left join public.sales s on s.tenant_id = a.tenant_id and s.id = a.sales_id
         where a.id = any ($1) and (a.tenant_id = $2) is true",
    )
    .bind(ids)
    .bind(tenant_id.0)
    .fetch_all(conn)
    .await?;
    let opening = |(id, created_at, owner, minutes, is_allowed, is_raw, claimed_key): Row| {
        let owner = owner.map(|owner| OpeningOwner {
            id: PersonId(owner),
            stale_threshold_minutes: minutes.unwrap_or(0),
            allow_remote_processing: is_allowed.unwrap_or(false),
        });
        (id, Opening { created_at, owner, is_raw, claimed_key: claimed_key.map(KeyId) })
    };
    Ok(rows.into_iter().map(opening).collect())
}

/// The arrivals of a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Bucket {
    pub begins: DateTime<Utc>,
    /// Up to [`MOST_COUNTED`], which means "at least".
    pub n: i64,
}

/// Counts the arrivals of each of the last `buckets` stretches of this length, the oldest first.
pub async fn count_per_bucket(
    conn: &mut PgConnection,
    now: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    length: Duration,
    buckets: i32,
) -> Result<Vec<Bucket>> {
    Ok(sqlx::query_as(include_str!("../sql/activities_per_bucket.sql"))
        .bind(tenant_id.0)
        .bind(now)
        .bind(MOST_COUNTED)
        .bind(length.as_secs_f64())
        .bind(buckets)
        .fetch_all(conn)
        .await?)
}

/// Today's events, and how many wait for an agent or for a person. A number of [`MOST_COUNTED`] means "at least".
#[derive(Clone, Copy, Debug, Default, sqlx::FromRow)]
pub struct Flow {
    pub today: i64,
    /// Events that wait for an agent.
    pub waiting: i64,
    /// Events that were given up and wait for a person.
    pub failed: i64,
    pub has_any: bool,
}

pub async fn flow(conn: &mut PgConnection, now: Option<DateTime<Utc>>, tenant_id: TenantId) -> Result<Flow> {
    Ok(sqlx::query_as(include_str!("../sql/activities_flow.sql"))
        .bind(tenant_id.0)
        .bind(now)
        .bind(MOST_COUNTED)
        .fetch_one(conn)
        .await?)
}

/// An event that memory does not have yet.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Unremembered {
    pub id: Uuid,
    #[sqlx(try_from = "String")]
    pub r#type: ActivityType,
    #[sqlx(try_from = "String")]
    pub processing_status: ProcessingStatus,
    pub subject: String,
    pub from: String,
    /// Empty when its channel is gone.
    pub source_name: String,
    pub created_at: DateTime<Utc>,
}

/// Lists the newest events that are no document yet: they wait for their lane, or for an agent that can transcribe them.
pub async fn unremembered(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<Unremembered>> {
    Ok(sqlx::query_as(include_str!("../sql/activities_unremembered.sql"))
        .bind(tenant_id.0)
        .bind(limit)
        .bind(domain::document::ACTIVITY_PREFIX)
        .fetch_all(conn)
        .await?)
}
