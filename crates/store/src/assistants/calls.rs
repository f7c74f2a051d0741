//! Calls over MCP: who called what, how long it took, how much was found.

use chrono::{DateTime, Utc};
use domain::{KeyId, TenantId};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// A call that ended.
#[derive(Clone, Debug)]
pub struct NewCall {
    pub id: Uuid,
    pub tenant_id: TenantId,
    pub key_id: KeyId,
    pub tool: &'static str,
    /// ok, refused, failed or cancelled.
    pub outcome: &'static str,
    pub duration_ms: i32,
    pub n_hits: Option<i32>,
    pub arguments: Option<Value>,
    pub at: DateTime<Utc>,
}

/// Writes calls. One that is written already is left as it is.
pub async fn insert(conn: &mut PgConnection, calls: &[NewCall]) -> Result<()> {
    sqlx::query(include_str!("../sql/mcp_calls_insert.sql"))
        .bind(calls.iter().map(|call| call.id).collect::<Vec<_>>())
        .bind(calls.iter().map(|call| call.tenant_id.0).collect::<Vec<_>>())
        .bind(calls.iter().map(|call| call.key_id.0).collect::<Vec<_>>())
        .bind(calls.iter().map(|call| call.tool).collect::<Vec<_>>())
        .bind(calls.iter().map(|call| call.outcome).collect::<Vec<_>>())
        .bind(calls.iter().map(|call| call.duration_ms).collect::<Vec<_>>())
        .bind(calls.iter().map(|call| call.n_hits).collect::<Vec<_>>())
        .bind(calls.iter().map(|call| call.arguments.clone()).collect::<Vec<_>>())
        .bind(calls.iter().map(|call| call.at).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(())
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Call {
    pub id: Uuid,
    pub key_id: Uuid,
    /// The key's name, or the assistant's.
    pub who: String,
    pub tool: String,
    pub outcome: String,
    pub duration_ms: i32,
    pub n_hits: Option<i32>,
    pub arguments: Option<Value>,
    pub at: DateTime<Utc>,
}

/// Lists calls, the latest first: the tenant's, or those of one key or person. `before` is the id of the last one of the page before.
pub async fn list(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key_id: Option<KeyId>,
    person_id: Option<i64>,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Call>> {
    Ok(sqlx::query_as(
        "select c.id, c.key_id, k.name as who, c.tool, c.outcome, c.duration_ms, c.n_hits, c.arguments, c.at
         from tributary.mcp_calls c join tributary.api_keys k on k.tenant_id = c.tenant_id and k.id = c.key_id
         where c.tenant_id = $1 and ($2::uuid is null or c.key_id = $2) and ($3::bigint is null or k.sales_id = $3)
             and ($4::uuid is null or c.id < $4)
         order by c.id desc limit $5",
    )
    .bind(tenant_id.0)
    .bind(key_id.map(|key| key.0))
    .bind(person_id)
    .bind(before)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}
