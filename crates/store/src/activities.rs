//! Activities: inbound events with their untouched originals. One event of a channel is one row, however often it is delivered.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::activity::SKIPPED;
use domain::{
    ActivityId, ActivityType, BlobKey, ChannelId, ContactId, Direction, KeyId, Notice, Op, PersonId, ProcessingStatus,
    TenantId,
};
use serde::Serialize;
use sqlx::{AssertSqlSafe, PgConnection, QueryBuilder};
use uuid::Uuid;

use crate::db::TxOn;
use crate::queue::MOST_COUNTED;
use crate::{Result, contacts};

/// The lane that remembers activities. Triggers of the table send its messages, for every writer: when activities with text are inserted, and when
/// some are completed.
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
        sqlx::query_as(include_str!("sql/activity_known.sql")).bind(channels).bind(keys).fetch_all(conn).await?;
    Ok(rows.into_iter().map(|(channel, key, id)| ((channel, key), ActivityId(id))).collect())
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

/// The activities that a list shows. Every field narrows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter<'a> {
    pub channel_id: Option<ChannelId>,
    pub contact_id: Option<ContactId>,
    /// The work of one person.
    pub person_id: Option<PersonId>,
    pub r#type: Option<ActivityType>,
    pub status: Option<ProcessingStatus>,
    /// Only activities that match no contact.
    pub is_unmatched: bool,
    pub since: Option<DateTime<Utc>>,
    /// Before this time.
    pub until: Option<DateTime<Utc>>,
    /// In its subject, its text or its addresses, in either case.
    pub text: Option<&'a str>,
}

/// The activities that are looked at for a page where no index decides which ones fit: enough for weeks, and read within a moment.
pub const LOOKED_AT: i64 = 10_000;

/// A place in the order of every list. It stays good when the activity that was there goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Position {
    pub created_at: DateTime<Utc>,
    pub id: Uuid,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.created_at.timestamp_micros(), self.id)
    }
}

impl FromStr for Position {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let read = || {
            let (micros, id) = text.split_once('_')?;
            let created_at = DateTime::from_timestamp_micros(micros.parse().ok()?)?;
            Some(Self { created_at, id: id.parse().ok()? })
        };
        read().ok_or("a place in the list is a number and an id, as a link to older ones has it")
    }
}

/// A page of activities, the newest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    pub filter: Filter<'a>,
    /// Older than this place.
    pub before: Option<Position>,
    pub limit: i64,
    /// With their whole texts, not as lists show them.
    pub is_whole: bool,
}

/// A condition on a row `a`: of the columns that have an index with the time, or of what each row says itself.
enum Condition<'a> {
    Contact(ContactId),
    Channel(ChannelId),
    Person(PersonId),
    Status(ProcessingStatus),
    Unmatched,
    Type(ActivityType),
    Text(&'a str),
}

impl Condition<'_> {
    /// Whether an index has these rows in the order of time.
    fn is_indexed(&self) -> bool {
        match self {
            Self::Contact(_) | Self::Channel(_) | Self::Person(_) | Self::Unmatched => true,
            Self::Status(status) => *status == ProcessingStatus::Failed,
            Self::Type(_) | Self::Text(_) => false,
        }
    }

    fn push(&self, sql: &mut QueryBuilder<sqlx::Postgres>) {
        match self {
            Self::Contact(id) => sql.push(" and a.contact_id = ").push_bind(id.0),
            Self::Channel(id) => sql.push(" and a.provider_id = ").push_bind(id.0),
            Self::Person(id) => sql.push(" and a.sales_id = ").push_bind(id.0),
            // Written out: the index is on this word.
            Self::Status(ProcessingStatus::Failed) => sql.push(" and a.processing_status = 'failed'"),
            Self::Status(status) => sql.push(" and a.processing_status = ").push_bind(status.as_str()),
            Self::Unmatched => sql.push(" and a.contact_id is null"),
            Self::Type(kind) => sql.push(" and a.type = ").push_bind(kind.as_str()),
            Self::Text(text) => sql
                .push(
                    " and strpos(lower(concat_ws(' ', a.raw_data ->> 'subject', a.raw_data ->> 'content', a.metadata ->> 'from',
                         a.metadata ->> 'from_name', a.metadata ->> 'to')), lower(",
                )
                .push_bind((*text).to_owned())
                .push(")) > 0"),
        };
    }
}

impl<'a> Wanted<'a> {
    /// The conditions that an index decides, at most one, and the others.
    fn conditions(&self) -> (Option<Condition<'a>>, Vec<Condition<'a>>) {
        let Filter { channel_id, contact_id, person_id, r#type, status, is_unmatched, text, .. } = self.filter;
        let all = [
            contact_id.map(Condition::Contact),
            channel_id.map(Condition::Channel),
            person_id.map(Condition::Person),
            status.map(Condition::Status),
            is_unmatched.then_some(Condition::Unmatched),
            r#type.map(Condition::Type),
            text.map(Condition::Text),
        ];
        let mut all: Vec<Condition<'a>> = all.into_iter().flatten().collect();
        let indexed = all.iter().position(Condition::is_indexed).map(|nth| all.remove(nth));
        (indexed, all)
    }

    /// Whether rows are looked at one by one, [`LOOKED_AT`] of them at most.
    pub fn is_sifted(&self) -> bool {
        !self.conditions().1.is_empty()
    }

    /// Adds what an index decides: the tenant, the first condition and the time.
    fn narrow(&self, sql: &mut QueryBuilder<sqlx::Postgres>, tenant_id: TenantId) {
        sql.push(" where a.tenant_id = ").push_bind(tenant_id.0);
        if let Some(condition) = self.conditions().0 {
            condition.push(sql);
        }
        // There was nothing before this, and PostgreSQL's times do not go back as far as ours.
        if let Some(since) = self.filter.since {
            sql.push(" and a.created_at >= ").push_bind(since.max(DateTime::UNIX_EPOCH));
        }
        if let Some(until) = self.filter.until {
            sql.push(" and a.created_at < ").push_bind(until.max(DateTime::UNIX_EPOCH));
        }
        if let Some(before) = self.before {
            sql.push(" and (a.created_at, a.id) < (").push_bind(before.created_at.max(DateTime::UNIX_EPOCH));
            sql.push(", ").push_bind(before.id).push(")");
        }
    }
}

/// The texts of an activity as lists show them: cut, and of `metadata` only parties and error.
const CUT: &str = "jsonb_build_object('source_type', a.raw_data -> 'source_type', 'subject', left(a.raw_data ->> 'subject', 300),
        'content', left(a.raw_data ->> 'content', 300)) as raw_data,
    case when a.processing_status = 'completed' then jsonb_strip_nulls(jsonb_build_object(
        'summary', left(a.processed_data ->> 'summary', 1000), 'transcript', left(a.processed_data ->> 'transcript', 3000),
        'facts', jsonb_path_query_array(a.processed_data, '$.facts[0 to 11]'))) end as processed_data,
    jsonb_strip_nulls(jsonb_build_object('from', a.metadata -> 'from', 'from_key', a.metadata -> 'from_key', 'to', a.metadata -> 'to',
        'to_key', a.metadata -> 'to_key', 'error', a.metadata -> 'error', 'retry_count', a.metadata -> 'retry_count',
        'written_by', a.metadata -> 'written_by', 'at', a.metadata -> 'at')) as metadata";

/// The columns of an [`Activity`] as lists show it, of `public.activities a`.
pub(crate) fn listed() -> String {
    format!("{STATE}, {CUT}")
}

/// The order of every list.
const NEWEST_FIRST: &str = " order by a.created_at desc, a.id desc limit ";

pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, wanted: Wanted<'_>) -> Result<Vec<Activity>> {
    let columns = match wanted.is_whole {
        true => format!("{STATE}, a.raw_data, a.processed_data, a.metadata"),
        false => listed(),
    };
    let (_, sifted) = wanted.conditions();
    let mut sql = QueryBuilder::new(format!("select {columns} from "));
    if sifted.is_empty() {
        sql.push("public.activities a");
        wanted.narrow(&mut sql, tenant_id);
    } else {
        // Both are in the same order, so this stops at the last row of the page.
        sql.push("(select a.* from public.activities a");
        wanted.narrow(&mut sql, tenant_id);
        sql.push(NEWEST_FIRST).push_bind(LOOKED_AT).push(") a where true");
        sifted.iter().for_each(|condition| condition.push(&mut sql));
    }
    sql.push(NEWEST_FIRST).push_bind(wanted.limit);
    Ok(sql.build_query_as().fetch_all(conn).await?)
}

/// Finds the place of the last of the activities that were looked at, if there are more behind it.
pub async fn last_looked_at(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    wanted: Wanted<'_>,
) -> Result<Option<Position>> {
    let mut sql = QueryBuilder::new("select a.created_at, a.id from public.activities a");
    wanted.narrow(&mut sql, tenant_id);
    sql.push(NEWEST_FIRST).push("1 offset ").push_bind(LOOKED_AT - 1);
    Ok(sql.build_query_as().fetch_optional(conn).await?)
}

/// The place of an activity.
pub async fn position(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<Option<Position>> {
    let sql = "select created_at, id from public.activities where tenant_id = $1 and id = $2";
    Ok(sqlx::query_as(sql).bind(tenant_id.0).bind(id.0).fetch_optional(conn).await?)
}

/// Reads some activities, as lists show them, in any order.
pub async fn get_all(conn: &mut PgConnection, tenant_id: TenantId, ids: &[Uuid]) -> Result<Vec<Activity>> {
    let sql = format!("select {} from public.activities a where a.tenant_id = $1 and a.id = any ($2)", listed());
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(tenant_id.0).bind(ids).fetch_all(conn).await?)
}

/// Links an activity to a contact. `false`: there is no such activity or contact. The caller has it remembered again.
pub async fn link(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId, contact_id: ContactId) -> Result<bool> {
    let linked = sqlx::query(
        "update public.activities set contact_id = c.id from public.contacts c
         where activities.tenant_id = $1 and activities.id = $2 and c.tenant_id = $1 and c.id = $3",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(contact_id.0)
    .execute(conn)
    .await?;
    Ok(linked.rows_affected() == 1)
}

/// Links activities without a contact to the contact that has their address now, or only those of this contact; returns them. The caller has them
/// remembered again.
pub async fn match_again(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    contact_id: Option<ContactId>,
) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(include_str!("sql/activities_match_again.sql"))
        .bind(tenant_id.0)
        .bind(contact_id.map(|contact| contact.0))
        .fetch_all(conn)
        .await?)
}

/// Replays failed activities as if they had never failed, and removes their dead letters. Returns those that had failed.
pub async fn retry(conn: &mut PgConnection, tenant_id: TenantId, ids: &[Uuid]) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(include_str!("sql/activities_retry.sql")).bind(tenant_id.0).bind(ids).fetch_all(conn).await?)
}

/// Ends an activity unprocessed. It waits for nobody, so it is no dead letter. `false`: it is completed, or there is none.
pub async fn skip(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId, by: &str) -> Result<bool> {
    let skipped: i64 = sqlx::query_scalar(include_str!("sql/activity_skip.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(by)
        .bind(SKIPPED)
        .fetch_one(conn)
        .await?;
    Ok(skipped == 1)
}

/// Returns the raw activities that arrived within `new_for`, of the newest ones.
pub async fn new_and_raw(
    conn: &mut PgConnection,
    now: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    new_for: Duration,
) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(include_str!("sql/activities_new_and_raw.sql"))
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
    Ok(sqlx::query_as(include_str!("sql/activities_per_bucket.sql"))
        .bind(tenant_id.0)
        .bind(now)
        .bind(MOST_COUNTED)
        .bind(length.as_secs_f64())
        .bind(buckets)
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
    Ok(sqlx::query_as(include_str!("sql/activities_flow.sql"))
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
    Ok(sqlx::query_as(include_str!("sql/activities_unremembered.sql"))
        .bind(tenant_id.0)
        .bind(limit)
        .bind(domain::document::ACTIVITY_PREFIX)
        .fetch_all(conn)
        .await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written_and_nothing_else_is() {
        let place = Position {
            created_at: DateTime::from_timestamp_micros(1_763_450_000_123_456).expect("a time"),
            id: Uuid::from_u128(7),
        };
        assert_eq!(place.to_string(), "1763450000123456_00000000-0000-0000-0000-000000000007");
        assert_eq!(place.to_string().parse(), Ok(place));
        for odd in [
            "",
            "_",
            "7",
            "x_00000000-0000-0000-0000-000000000007",
            "7_x",
            "9223372036854775807_00000000-0000-0000-0000-000000000007",
        ] {
            assert!(odd.parse::<Position>().is_err(), "{odd}");
        }
    }
}
