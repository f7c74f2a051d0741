//! The devices on which people's agents run (table `crm_processing_nodes`): which are online, and what people set for them.

use chrono::{DateTime, Utc};
use domain::activity::HEARD_WITHIN;
use domain::{ActivityId, NodeId, NodeStatus, PersonId, TenantId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// Pages list at most so many devices.
const MOST: i64 = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Idle,
    Processing,
    Offline,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Processing => "processing",
            Self::Offline => "offline",
        }
    }
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Node {
    pub id: Uuid,
    #[sqlx(rename = "sales_id")]
    pub person_id: i64,
    pub app_name: String,
    pub device_name: String,
    #[sqlx(try_from = "String")]
    status: NodeStatus,
    pub current_activity_id: Option<Uuid>,
    /// The number of activities it has processed since it started, by its own count.
    pub processed_count: i32,
    pub last_heartbeat: DateTime<Utc>,
    pub enabled: bool,
    pub concurrency: i32,
    pub created_at: DateTime<Utc>,
    /// Seconds since the last heartbeat, by the database's clock.
    silent_secs: f64,
    /// The number of activities its person holds, on this device or another.
    pub held: i64,
}

impl Node {
    pub fn state(&self) -> State {
        state(self.status, self.silent_secs)
    }
}

/// A device is as it said last, while it is heard.
fn state(status: NodeStatus, silent_secs: f64) -> State {
    match status {
        _ if silent_secs > HEARD_WITHIN.as_seconds_f64() => State::Offline,
        NodeStatus::Ready => State::Idle,
        NodeStatus::Processing => State::Processing,
        NodeStatus::Offline => State::Offline,
    }
}

/// Lists the tenant's devices, the latest heartbeat first.
pub async fn list(conn: &mut PgConnection, at: Option<DateTime<Utc>>, tenant_id: TenantId) -> Result<Vec<Node>> {
    Ok(sqlx::query_as(include_str!("sql/nodes_list.sql")).bind(tenant_id.0).bind(at).bind(MOST).fetch_all(conn).await?)
}

/// Settings of a device, which it reads with its next heartbeat.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    /// Whether it claims at all.
    pub enabled: Option<bool>,
    /// The number of activities it works on at once.
    pub concurrency: Option<i32>,
}

/// Changes a device's settings. `false`: there is no such device.
pub async fn change(conn: &mut PgConnection, tenant_id: TenantId, id: NodeId, change: Change) -> Result<bool> {
    let changed = sqlx::query(include_str!("sql/node_change.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(change.enabled)
        .bind(change.concurrency)
        .execute(conn)
        .await?;
    Ok(changed.rows_affected() == 1)
}

/// A heartbeat.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat<'a> {
    pub person_id: PersonId,
    pub app_name: &'a str,
    pub device_name: &'a str,
    pub status: NodeStatus,
    pub current_activity_id: Option<ActivityId>,
    pub processed_count: i64,
    /// The number of activities at once, until a person sets another.
    pub concurrency: u32,
}

/// Stores a heartbeat of an agent in this process. Returns whether the agent is enabled, and how many activities it may hold.
pub async fn beat(conn: &mut PgConnection, tenant_id: TenantId, beat: &Heartbeat<'_>) -> Result<(bool, i32)> {
    Ok(sqlx::query_as(
        "insert into public.crm_processing_nodes as n
             (tenant_id, sales_id, app_name, device_name, status, current_activity_id, processed_count, concurrency)
         values ($1, $2, $3, $4, $5, $6, least($7, 2147483647)::int4, $8)
         on conflict (sales_id, app_name, device_name) do update
         set status = excluded.status, current_activity_id = excluded.current_activity_id, processed_count = excluded.processed_count
         returning n.enabled, n.concurrency",
    )
    .bind(tenant_id.0)
    .bind(beat.person_id.0)
    .bind(beat.app_name)
    .bind(beat.device_name)
    .bind(beat.status.as_str())
    .bind(beat.current_activity_id.map(|id| id.0))
    .bind(beat.processed_count)
    .bind(i32::try_from(beat.concurrency).unwrap_or(64))
    .fetch_one(conn)
    .await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_offline_when_it_says_so_or_says_nothing() {
        let cases = [
            (NodeStatus::Ready, 0.0, State::Idle),
            (NodeStatus::Processing, 119.9, State::Processing),
            (NodeStatus::Processing, 120.1, State::Offline),
            (NodeStatus::Offline, 1.0, State::Offline),
        ];
        for (status, silent_secs, expected) in cases {
            assert_eq!(state(status, silent_secs), expected, "{status}, silent for {silent_secs} s");
        }
    }
}
