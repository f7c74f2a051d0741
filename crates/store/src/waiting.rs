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

/// A call that is heard on this machine.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Hearing {
    pub activity_id: Uuid,
    /// The pages that are heard, and all of them; none while nobody knows how many.
    pub n_heard: i64,
    pub n_pages: Option<i32>,
}

/// Lists the tenant's calls that are being heard, with what is kept of them.
pub async fn hearing(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Hearing>> {
    Ok(sqlx::query_as(include_str!("sql/waiting_hearing.sql")).bind(tenant_id.0).fetch_all(conn).await?)
}
