//! Lists of activities, the newest first, narrowed by filters and read page by page.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use domain::{ActivityId, ActivityType, ChannelId, ContactId, PersonId, ProcessingStatus, TenantId};
use sqlx::{AssertSqlSafe, PgConnection, QueryBuilder};
use uuid::Uuid;

use super::{Activity, STATE};
use crate::Result;

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
        'language', left(a.processed_data ->> 'language', 40),
        'confidence', case when jsonb_typeof(a.processed_data -> 'confidence') = 'number' then a.processed_data -> 'confidence' end,
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
