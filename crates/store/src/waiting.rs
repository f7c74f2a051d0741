//! Activities that wait for an agent, and how long such waits took lately.

use chrono::{DateTime, Utc};
use domain::TenantId;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// The number of recent activities from which the pace is computed.
const LATELY: i64 = 500;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Waiting {
    pub id: Uuid,
    pub r#type: String,
    /// The owner; `None` if nobody owns it.
    #[sqlx(rename = "sales_id")]
    pub person_id: Option<i64>,
    pub source_type: String,
    pub created_at: DateTime<Utc>,
}

/// Lists waiting activities, oldest first.
pub async fn oldest(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<Waiting>> {
    Ok(sqlx::query_as(include_str!("sql/waiting_oldest.sql")).bind(tenant_id.0).bind(limit).fetch_all(conn).await?)
}

/// The recent pace for one type of activity.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Pace {
    pub r#type: String,
    /// Time from arrival to result: the first quartile, so that activities which lay waiting do not count.
    pub took_secs: f64,
    /// Time from one result to the next; `None` if there was only one.
    pub gap_secs: Option<f64>,
}

pub async fn paces(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Pace>> {
    Ok(sqlx::query_as(include_str!("sql/waiting_paces.sql")).bind(tenant_id.0).bind(LATELY).fetch_all(conn).await?)
}
