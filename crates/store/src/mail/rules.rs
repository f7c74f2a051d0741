//! Rules of mailboxes that differ from the shipped ones.

use chrono::{DateTime, Utc};
use domain::{SourceId, TenantId};
use serde_json::Value;
use sqlx::PgConnection;

use crate::Result;

/// A rule of a mailbox's own, or a shipped one (without conditions) that was switched.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct RuleRow {
    pub name: String,
    pub is_on: bool,
    pub conditions: Option<Value>,
    pub changed_by: String,
    pub changed_at: DateTime<Utc>,
}

/// Lists them by name.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<Vec<RuleRow>> {
    Ok(sqlx::query_as(
        "select name, is_on, conditions, changed_by, changed_at from public.mail_rules
         where tenant_id = $1 and source_id = $2 order by name",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .fetch_all(conn)
    .await?)
}

/// Stores one.
pub async fn set(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    (tenant_id, source_id): (TenantId, SourceId),
    name: &str,
    (is_on, conditions): (bool, Option<&Value>),
    by: &str,
) -> Result<()> {
    sqlx::query(
        "insert into public.mail_rules (tenant_id, source_id, name, is_on, conditions, changed_by, changed_at)
         values ($1, $2, $3, $4, $5, $6, coalesce($7, now()))
         on conflict (tenant_id, source_id, name) do update set is_on = excluded.is_on, conditions = excluded.conditions,
             changed_by = excluded.changed_by, changed_at = excluded.changed_at",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(name)
    .bind(is_on)
    .bind(conditions)
    .bind(by)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes a rule of a mailbox's own. `false`: there is none of this name.
pub async fn remove(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId, name: &str) -> Result<bool> {
    let removed = sqlx::query(
        "delete from public.mail_rules where tenant_id = $1 and source_id = $2 and name = $3 and conditions is not null",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(name)
    .execute(conn)
    .await?;
    Ok(removed.rows_affected() == 1)
}
