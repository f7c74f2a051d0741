//! Saved searches (table `saved_searches`): what is asked again and again, and since when its hits are new.

use chrono::{DateTime, Utc};
use domain::TenantId;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::memory::{Filters, Mode};
use crate::{OnConstraint as _, Result};

/// The most that a tenant has.
pub const MOST: i64 = 100;

/// The question and its filters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Asked {
    pub text: String,
    #[serde(default)]
    pub mode: Mode,
    #[serde(default)]
    pub filters: Filters,
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct SavedSearch {
    pub id: Uuid,
    pub name: String,
    #[sqlx(json, rename = "query")]
    pub asked: Asked,
    pub created_by: String,
    pub created_at: DateTime<Utc>,
    /// Documents that were stored after that are new.
    pub seen_at: DateTime<Utc>,
    /// Whether anything was stored since.
    pub has_later: bool,
    /// The time of this reading. What is stored later may not be in what is shown with it.
    pub read_at: DateTime<Utc>,
}

/// Lists the tenant's saved searches by name, or one of them.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, only: Option<Uuid>) -> Result<Vec<SavedSearch>> {
    Ok(sqlx::query_as(
        "select s.id, s.name, s.query, s.created_by, s.created_at, s.seen_at,
             exists (select from public.source_documents d where d.tenant_id = $1 and d.updated_at > s.seen_at) as has_later,
             now() as read_at
         from public.saved_searches s where s.tenant_id = $1 and ($2::uuid is null or s.id = $2) order by lower(s.name)",
    )
    .bind(tenant_id.0)
    .bind(only)
    .fetch_all(conn)
    .await?)
}

/// Saves a search. `None`: the tenant has [`MOST`] already.
pub async fn insert(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    name: &str,
    asked: &Asked,
    created_by: &str,
) -> Result<Option<Uuid>> {
    // One after the other, so that two at once do not exceed the number.
    sqlx::query("select from public.tenants where id = $1 for no key update")
        .bind(tenant_id.0)
        .execute(&mut *conn)
        .await?;
    let inserted = sqlx::query_scalar(
        "insert into public.saved_searches (id, tenant_id, name, query, created_by)
         select $1, $2, $3, $4, $5 where (select count(*) from public.saved_searches where tenant_id = $2) < $6 returning id",
    )
    .bind(Uuid::now_v7())
    .bind(tenant_id.0)
    .bind(name)
    .bind(Json(asked))
    .bind(created_by)
    .bind(MOST)
    .fetch_optional(conn)
    .await;
    inserted.on_constraint("saved_searches_name_key", "a saved search has that name already")
}

/// Only what is stored after `until` is new; without a time, after now. What was seen stays seen, and nothing is seen that comes later than now.
/// `false`: there is no such search.
pub async fn see(conn: &mut PgConnection, tenant_id: TenantId, id: Uuid, until: Option<DateTime<Utc>>) -> Result<bool> {
    let seen = sqlx::query(
        "update public.saved_searches set seen_at = greatest(seen_at, least(now(), coalesce($3, now()))) where tenant_id = $1 and id = $2",
    );
    Ok(seen.bind(tenant_id.0).bind(id).bind(until).execute(conn).await?.rows_affected() == 1)
}

pub async fn delete(conn: &mut PgConnection, tenant_id: TenantId, id: Uuid) -> Result<bool> {
    let deleted = sqlx::query("delete from public.saved_searches where tenant_id = $1 and id = $2");
    Ok(deleted.bind(tenant_id.0).bind(id).execute(conn).await?.rows_affected() == 1)
}
