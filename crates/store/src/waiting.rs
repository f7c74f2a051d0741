//! Activities that wait for an agent, and how fast such waits have ended lately.

use chrono::{DateTime, Utc};
use domain::TenantId;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// Enough of the newest to tell a pace by.
const LATELY: i64 = 500;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Waiting {
    pub id: Uuid,
    pub r#type: String,
    /// Whose work it is; none: everyone's.
    #[sqlx(rename = "sales_id")]
    pub person_id: Option<i64>,
    pub source_type: String,
    pub created_at: DateTime<Utc>,
}

/// The oldest first.
pub async fn oldest(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<Waiting>> {
    Ok(sqlx::query_as(include_str!("sql/waiting_oldest.sql")).bind(tenant_id.0).bind(limit).fetch_all(conn).await?)
}

/// How fast activities of a type were done lately.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Pace {
    pub r#type: String,
    /// From its coming to its result: what a quarter of them took at most, so that those which lay waiting do not count.
    pub took_secs: f64,
    /// From one result to the next; none when there was but one.
    pub gap_secs: Option<f64>,
}

pub async fn paces(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Pace>> {
    Ok(sqlx::query_as(include_str!("sql/waiting_paces.sql")).bind(tenant_id.0).bind(LATELY).fetch_all(conn).await?)
}
