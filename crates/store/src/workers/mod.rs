//! Worker tracking: pgai's tables and functions for the heartbeat, and our own tables to detect stalled workers.

pub mod life;

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::WorkerId;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// The counts of a heartbeat, since the previous one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    pub successes: i64,
    pub errors: i64,
    pub last_error: Option<String>,
}

/// A heartbeat's report on one lane. It contains ages, not times; the database converts them to its own clock.
#[derive(Clone, Debug)]
pub struct LaneBeat {
    pub lane: &'static str,
    pub lease_secs: i32,
    pub holding: i32,
    pub progressed_secs_ago: f64,
    pub claimed_secs_ago: f64,
    pub done: i64,
    pub failed: i64,
    pub waited: i64,
    pub stale: i64,
}

/// One lane in one worker, as of its last heartbeat.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct LaneState {
    pub lane: String,
    pub lease_secs: i32,
    pub holding: i32,
    pub progressed_at: DateTime<Utc>,
    pub claimed_at: DateTime<Utc>,
    pub done: i64,
    pub failed: i64,
    pub waited: i64,
    pub stale: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    Alive,
    Late,
    Stalled,
    Dead,
    Stopped,
}

impl Health {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Late => "late",
            Self::Stalled => "stalled",
            Self::Dead => "dead",
            Self::Stopped => "stopped",
        }
    }
}

#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Worker {
    pub id: Uuid,
    pub version: String,
    pub host: Option<String>,
    pub pid: Option<i32>,
    pub role: Option<String>,
    pub started: DateTime<Utc>,
    pub interval_secs: f64,
    pub last_heartbeat: DateTime<Utc>,
    pub heartbeat_count: i64,
    pub success_count: i64,
    pub error_count: i64,
    pub last_error_at: Option<DateTime<Utc>>,
    pub last_error_message: Option<String>,
    pub stopped_at: Option<DateTime<Utc>>,
    /// When others found it dead and took over what it held.
    #[serde(skip)]
    pub died_at: Option<DateTime<Utc>>,
    /// Seconds since the last heartbeat, by the database's clock.
    pub silent_secs: f64,
    /// Why it counts as stalled, if it does.
    pub stalled_because: Option<String>,
}

impl Worker {
    pub fn health(&self) -> Health {
        let (is_stopped, is_dead) = (self.stopped_at.is_some(), self.died_at.is_some());
        health(is_stopped, is_dead, self.silent_secs, self.interval_secs, self.stalled_because.is_some())
    }

    /// Items per minute over its whole life.
    pub fn per_minute(&self) -> f64 {
        let minutes = (self.last_heartbeat - self.started).num_milliseconds() as f64 / 60_000.0;
        if minutes > 0.0 { self.success_count as f64 / minutes } else { 0.0 }
    }
}

/// A worker is late after twice its interval and dead after ten times, or when its session has ended. A stalled worker sends heartbeats but makes no progress.
fn health(stopped: bool, found_dead: bool, silent_secs: f64, interval_secs: f64, stalled: bool) -> Health {
    if stopped {
        Health::Stopped
    } else if found_dead || silent_secs > 10.0 * interval_secs {
        Health::Dead
    } else if silent_secs > 2.0 * interval_secs {
        Health::Late
    } else if stalled {
        Health::Stalled
    } else {
        Health::Alive
    }
}

/// A worker that was found dead, and the name under which it holds items.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Found {
    pub id: Uuid,
    pub name: String,
}

/// The workers of the last day that were silent for ten heartbeats, and whose death nobody has written down.
pub async fn silent(conn: &mut PgConnection) -> Result<Vec<Found>> {
    Ok(sqlx::query_as(include_str!("../sql/workers_silent.sql")).fetch_all(conn).await?)
}

/// Waits for nobody: `false` when another process is taking over. The transaction holds the right to until it ends.
pub async fn may_take_over(conn: &mut PgConnection) -> Result<bool> {
    const TAKE_OVER: i64 = 0x7461_6b65_206f_7665;
    Ok(sqlx::query_scalar("select pg_try_advisory_xact_lock($1)").bind(TAKE_OVER).fetch_one(conn).await?)
}

/// Writes down that these workers are dead, so that each death is acted on once.
pub async fn declare_dead(conn: &mut PgConnection, dead: &[Found]) -> Result<()> {
    let sql = "update tributary.workers set died_at = clock_timestamp()
        where process_id = any($1) and died_at is null and stopped_at is null";
    sqlx::query(sql).bind(dead.iter().map(|worker| worker.id).collect::<Vec<_>>()).execute(conn).await?;
    Ok(())
}

/// Whether this database has the tracking tables. Without them workers run untracked.
pub async fn is_tracked(conn: &mut PgConnection) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "select exists (select from information_schema.tables where table_schema = 'ai' and table_name = 'vectorizer_worker_process')",
    )
    .fetch_one(conn)
    .await?)
}

/// Where a worker runs, and the name under which it holds items.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    pub name: &'a str,
    pub host: &'a str,
    pub pid: i32,
    pub role: &'a str,
}

pub async fn start(
    conn: &mut PgConnection,
    version: &str,
    interval: Duration,
    identity: Identity<'_>,
) -> Result<WorkerId> {
    let id: Uuid = sqlx::query_scalar(
        "with started as (select ai._worker_start($1, make_interval(secs => $2)) as id)
         insert into tributary.workers (process_id, name, host, pid, role) select id, $3, $4, $5, $6 from started returning process_id",
    )
    .bind(version)
    .bind(interval.as_secs_f64())
    .bind(identity.name)
    .bind(identity.host)
    .bind(identity.pid)
    .bind(identity.role)
    .fetch_one(conn)
    .await?;
    Ok(WorkerId(id))
}

/// Writes one heartbeat. It takes back what others said of the worker's death. The last one of a graceful stop also records that the worker stopped
/// on purpose.
pub async fn heartbeat(
    conn: &mut PgConnection,
    id: WorkerId,
    beat: &Beat,
    lanes: &[LaneBeat],
    is_last: bool,
) -> Result<()> {
    // As int, which fits both pgai's function and ours: a count since the last heartbeat is small.
    sqlx::query("select ai._worker_heartbeat($1, least($2, 2147483647)::int, least($3, 2147483647)::int, $4)")
        .bind(id.0)
        .bind(beat.successes)
        .bind(beat.errors)
        .bind(beat.last_error.as_deref())
        .execute(&mut *conn)
        .await?;
    if !lanes.is_empty() {
        sqlx::query(include_str!("../sql/worker_lanes.sql"))
            .bind(id.0)
            .bind(lanes.iter().map(|lane| lane.lane).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.lease_secs).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.holding).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.progressed_secs_ago).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.claimed_secs_ago).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.done).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.failed).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.waited).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.stale).collect::<Vec<_>>())
            .execute(&mut *conn)
            .await?;
    }
    sqlx::query("update tributary.workers set died_at = null where process_id = $1 and died_at is not null")
        .bind(id.0)
        .execute(&mut *conn)
        .await?;
    if is_last {
        sqlx::query("update tributary.workers set stopped_at = clock_timestamp() where process_id = $1")
            .bind(id.0)
            .execute(conn)
            .await?;
    }
    Ok(())
}

/// Lists all workers, the liveliest first. `due` is the time since when each lane has had due items: a worker of such a lane that
/// claims nothing is stalled.
pub async fn list(conn: &mut PgConnection, due: &[(String, DateTime<Utc>)]) -> Result<Vec<Worker>> {
    Ok(sqlx::query_as(include_str!("../sql/worker_list.sql"))
        .bind(due.iter().map(|(lane, _)| lane.as_str()).collect::<Vec<_>>())
        .bind(due.iter().map(|(_, at)| *at).collect::<Vec<_>>())
        .fetch_all(conn)
        .await?)
}

/// Returns the roles of workers that are not dead: `up`, `worker`.
pub async fn live_roles(conn: &mut PgConnection) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(
        "select distinct w.role from ai.vectorizer_worker_process p join tributary.workers w on w.process_id = p.id
         where w.stopped_at is null and w.died_at is null and w.role is not null and p.last_heartbeat > clock_timestamp() - 10 * p.expected_heartbeat_interval",
    )
    .fetch_all(conn)
    .await?)
}

pub async fn lanes(conn: &mut PgConnection, id: Uuid) -> Result<Vec<LaneState>> {
    Ok(sqlx::query_as(
        "select lane, lease_secs, holding, progressed_at, claimed_at, done, failed, waited, stale
         from tributary.worker_lanes where process_id = $1 order by lane",
    )
    .bind(id)
    .fetch_all(conn)
    .await?)
}

/// Loads the lanes of several workers, each with its worker's id.
pub async fn lanes_of(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<(Uuid, LaneState)>> {
    #[derive(sqlx::FromRow)]
    struct Row {
        process_id: Uuid,
        #[sqlx(flatten)]
        state: LaneState,
    }
    let rows: Vec<Row> = sqlx::query_as(
        "select process_id, lane, lease_secs, holding, progressed_at, claimed_at, done, failed, waited, stale
         from tributary.worker_lanes where process_id = any($1) order by lane",
    )
    .bind(ids)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.process_id, row.state)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alive_late_stalled_and_dead_are_told_apart() {
        let cases = [
            (false, false, 4.9, false, Health::Alive),
            (false, false, 10.0, false, Health::Alive),
            (false, false, 10.1, false, Health::Late),
            (false, false, 10.1, true, Health::Late),
            (false, false, 50.1, false, Health::Dead),
            (false, false, 1.0, true, Health::Stalled),
            (false, true, 7.0, true, Health::Dead),
            (true, true, 9_999.0, true, Health::Stopped),
        ];
        for (stopped, found_dead, silent, stalled, expected) in cases {
            assert_eq!(health(stopped, found_dead, silent, 5.0, stalled), expected, "silent for {silent} s");
        }
    }
}
