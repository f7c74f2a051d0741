//! Alerts: problems that a person should look at. An alert is open until its cause is gone.

use chrono::{DateTime, Utc};
use domain::TenantId;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Alert {
    pub id: Uuid,
    pub kind: String,
    pub subject: String,
    pub what: String,
    pub todo: String,
    pub since: DateTime<Utc>,
}

/// A problem that exists now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub kind: &'static str,
    pub subject: String,
    pub what: String,
    pub todo: String,
}

/// Opens alerts for new findings and closes those without one. Returns the newly opened alerts.
pub async fn reconcile(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    findings: &[Finding],
) -> Result<Vec<Alert>> {
    let kinds: Vec<&str> = findings.iter().map(|finding| finding.kind).collect();
    let subjects: Vec<&str> = findings.iter().map(|finding| finding.subject.as_str()).collect();
    let whats: Vec<&str> = findings.iter().map(|finding| finding.what.as_str()).collect();
    let todos: Vec<&str> = findings.iter().map(|finding| finding.todo.as_str()).collect();
    let ids: Vec<Uuid> = findings.iter().map(|_| Uuid::now_v7()).collect();
    sqlx::query(
        "update tributary.alerts set closed_at = coalesce($1, now())
         where tenant_id = $2 and closed_at is null and (kind, subject) not in (select * from unnest($3::text[], $4::text[]))",
    )
    .bind(at)
    .bind(tenant_id.0)
    .bind(&kinds)
    .bind(&subjects)
    .execute(&mut *conn)
    .await?;
    Ok(sqlx::query_as(include_str!("sql/alerts_open.sql"))
        .bind(at)
        .bind(tenant_id.0)
        .bind(&ids)
        .bind(&kinds)
        .bind(&subjects)
        .bind(&whats)
        .bind(&todos)
        .fetch_all(conn)
        .await?)
}

pub async fn open(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Alert>> {
    Ok(sqlx::query_as(
        "select id, kind, subject, what, todo, since from tributary.alerts where tenant_id = $1 and closed_at is null order by since",
    )
    .bind(tenant_id.0)
    .fetch_all(conn)
    .await?)
}
