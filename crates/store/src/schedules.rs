//! Schedules without a leader: any worker takes a due row, moves it and sends the lane's message in one transaction, so that a
//! tick fires once. Missed ticks collapse into one.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;

use crate::Result;

#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Schedule {
    pub name: String,
    pub lane: String,
    pub message: Value,
    pub every_secs: f64,
    pub next_run_at: DateTime<Utc>,
    pub last_run_at: Option<DateTime<Utc>>,
    pub last_error: Option<String>,
    pub last_error_at: Option<DateTime<Utc>>,
}

/// Makes the row, which fires first after `first_after`, or brings its interval and message up to date; its times stay.
pub async fn ensure(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    name: &str,
    lane: &str,
    every: Duration,
    first_after: Duration,
    message: &Value,
) -> Result<()> {
    sqlx::query(
        "insert into tributary.schedules (name, lane, message, every, next_run_at)
         values ($1, $2, $3, make_interval(secs => $4), coalesce($5, now()) + make_interval(secs => $6))
         on conflict (name) do update set lane = excluded.lane, message = excluded.message, every = excluded.every
         where (schedules.lane, schedules.message, schedules.every) is distinct from (excluded.lane, excluded.message, excluded.every)",
    )
    .bind(name)
    .bind(lane)
    .bind(message)
    .bind(every.as_secs_f64())
    .bind(at)
    .bind(first_after.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes one due schedule and moves it to its next tick; the caller sends its message in the same transaction.
pub async fn take_due(conn: &mut PgConnection, at: Option<DateTime<Utc>>) -> Result<Option<Schedule>> {
    Ok(sqlx::query_as(include_str!("sql/schedule_take.sql")).bind(at).fetch_optional(conn).await?)
}

/// Moves a schedule that could not fire to its next tick, with the error.
pub async fn pass_over(conn: &mut PgConnection, at: Option<DateTime<Utc>>, name: &str, error: &str) -> Result<()> {
    sqlx::query(
        "update tributary.schedules set next_run_at = coalesce($1, now()) + every, last_error = $3, last_error_at = coalesce($1, now())
         where name = $2 and next_run_at <= coalesce($1, now())",
    )
    .bind(at)
    .bind(name)
    .bind(error)
    .execute(conn)
    .await?;
    Ok(())
}

/// Records how a tick's work went; an error stays until the next success.
pub async fn record(conn: &mut PgConnection, at: Option<DateTime<Utc>>, name: &str, error: Option<&str>) -> Result<()> {
    sqlx::query(
        "update tributary.schedules set last_error = $2, last_error_at = case when $2 is null then null else coalesce($3, now()) end
         where name = $1 and (last_error is not null or $2 is not null)",
    )
    .bind(name)
    .bind(error)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn list(conn: &mut PgConnection) -> Result<Vec<Schedule>> {
    Ok(sqlx::query_as(
        "select name, lane, message, extract(epoch from every)::float8 as every_secs, next_run_at, last_run_at, last_error, last_error_at
         from tributary.schedules order by name",
    )
    .fetch_all(conn)
    .await?)
}
