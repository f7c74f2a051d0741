//! Request limits of providers, shared by all processes: budgets in the provider's own units, and breakers that pause all requests.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::Result;

/// Takes `n` of the `units` that return every `per`, and returns how long to wait first. If that is longer than `patience`, nothing was
/// taken.
pub async fn take(
    conn: &mut PgConnection,
    key: &str,
    units: f64,
    per: Duration,
    n: u32,
    patience: Duration,
) -> Result<Duration> {
    let wait: f64 = sqlx::query_scalar("select tributary.take_turn($1, $2, $3, $4, $5)")
        .bind(key)
        .bind(units)
        .bind(per.as_secs_f64())
        .bind(f64::from(n))
        .bind(patience.as_secs_f64())
        .fetch_one(conn)
        .await?;
    Ok(Duration::try_from_secs_f64(wait).unwrap_or_default())
}

/// A closed gate: the reason, and for how much longer.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Closed {
    pub key: String,
    pub secs: f64,
    pub reason: String,
}

/// Returns those of the given gates that are closed now, the one that opens last first.
pub async fn closed(conn: &mut PgConnection, at: Option<DateTime<Utc>>, keys: &[&str]) -> Result<Vec<Closed>> {
    Ok(sqlx::query_as(
        "select key, extract(epoch from closed_until - coalesce($2, now()))::float8 as secs, coalesce(reason, '') as reason
         from tributary.gates where key = any($1) and closed_until > coalesce($2, now()) order by closed_until desc",
    )
    .bind(keys)
    .bind(at)
    .fetch_all(conn)
    .await?)
}

/// A gate that was closed, and that nothing has passed since.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Shut {
    pub key: String,
    pub closed_until: DateTime<Utc>,
    pub reason: String,
}

/// Returns those of the given gates that were closed and that nothing has passed since, whether they may be tried again or not.
pub async fn shut(conn: &mut PgConnection, keys: &[String]) -> Result<Vec<Shut>> {
    Ok(sqlx::query_as(
        "select key, closed_until, coalesce(reason, '') as reason from tributary.gates
         where key = any($1) and closed_until is not null",
    )
    .bind(keys)
    .fetch_all(conn)
    .await?)
}

/// Closes a gate for a time. A gate that is already closed for longer stays so.
pub async fn close(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    key: &str,
    wait: Duration,
    reason: &str,
) -> Result<()> {
    sqlx::query(
        "insert into tributary.gates as g (key, closed_until, reason) values ($1, coalesce($2, now()) + make_interval(secs => $3), $4)
         on conflict (key) do update set closed_until = greatest(g.closed_until, excluded.closed_until), reason = excluded.reason",
    )
    .bind(key)
    .bind(at)
    .bind(wait.as_secs_f64())
    .bind(reason)
    .execute(conn)
    .await?;
    Ok(())
}

/// Failures without a success between them.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Failing {
    pub failures: i32,
    secs: f64,
}

impl Failing {
    /// The time since the first of them.
    pub fn age(self) -> Duration {
        Duration::try_from_secs_f64(self.secs).unwrap_or_default()
    }
}

/// Counts a failure.
pub async fn failed(conn: &mut PgConnection, at: Option<DateTime<Utc>>, key: &str) -> Result<Failing> {
    Ok(sqlx::query_as(
        "insert into tributary.gates as g (key, failures, failing_since) values ($1, 1, coalesce($2, now()))
         on conflict (key) do update set failures = g.failures + 1, used_at = now(),
             failing_since = coalesce(g.failing_since, excluded.failing_since)
         returning failures, extract(epoch from coalesce($2, now()) - failing_since)::float8 as secs",
    )
    .bind(key)
    .bind(at)
    .fetch_one(conn)
    .await?)
}

/// Opens gates, and forgets their failures.
pub async fn worked(conn: &mut PgConnection, keys: &[&str]) -> Result<()> {
    sqlx::query(
        "update tributary.gates set failures = 0, failing_since = null, closed_until = null, reason = null
         where key = any($1) and (failures > 0 or closed_until is not null)",
    )
    .bind(keys)
    .execute(conn)
    .await?;
    Ok(())
}
