//! Alerts: problems that a person should look at. An alert is open until its cause is gone.

use std::time::Duration;

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
    // What comes back is told again.
    sqlx::query(
        "delete from tributary.dismissals where tenant_id = $1 and (kind, subject) not in (select * from unnest($2::text[], $3::text[]))",
    )
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

/// A finding that a person does not want to see for a while.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Dismissal {
    pub kind: String,
    pub subject: String,
}

/// Lists the dismissals that are not over.
pub async fn dismissals(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
) -> Result<Vec<Dismissal>> {
    let sql = "select kind, subject from tributary.dismissals where tenant_id = $1 and until > coalesce($2, now())";
    Ok(sqlx::query_as(sql).bind(tenant_id.0).bind(at).fetch_all(conn).await?)
}

/// Dismisses findings of one kind for a while; again, from now on.
pub async fn dismiss(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    kind: &str,
    subjects: &[&str],
    by: &str,
    lasts: Duration,
) -> Result<()> {
    sqlx::query(
        "insert into tributary.dismissals (tenant_id, kind, subject, dismissed_by, until)
         select $1, $2, subject, $4, coalesce($5, now()) + make_interval(secs => $6) from unnest($3::text[]) subject
         on conflict (tenant_id, kind, subject) do update set dismissed_by = excluded.dismissed_by, until = excluded.until",
    )
    .bind(tenant_id.0)
    .bind(kind)
    .bind(subjects)
    .bind(by)
    .bind(at)
    .bind(lasts.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends the dismissals of one kind. Returns how many there were.
pub async fn restore(conn: &mut PgConnection, tenant_id: TenantId, kind: &str) -> Result<u64> {
    let sql = "delete from tributary.dismissals where tenant_id = $1 and kind = $2";
    Ok(sqlx::query(sql).bind(tenant_id.0).bind(kind).execute(conn).await?.rows_affected())
}

pub async fn open(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Alert>> {
    Ok(sqlx::query_as(
        "select id, kind, subject, what, todo, since from tributary.alerts where tenant_id = $1 and closed_at is null order by since",
    )
    .bind(tenant_id.0)
    .fetch_all(conn)
    .await?)
}
