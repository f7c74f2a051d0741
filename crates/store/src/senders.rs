//! Senders that match no contact, and those of them that a person ignores (table `ignored_senders`).

use chrono::{DateTime, Utc};
use domain::TenantId;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::queue::MOST_COUNTED;

/// The address of activities without a contact.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Sender {
    #[sqlx(rename = "party")]
    pub address: String,
    /// The number of its activities, up to [`MOST_COUNTED`].
    pub n: i64,
    pub newest_id: Uuid,
    /// The number of senders without a contact, of which this is one.
    pub n_senders: i64,
}

/// Lists senders without a contact, the latest first, however many activities one of them has.
pub async fn unrecognised(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<Sender>> {
    Ok(sqlx::query_as(include_str!("sql/senders_unrecognised.sql"))
        .bind(tenant_id.0)
        .bind(limit)
        .bind(MOST_COUNTED)
        .fetch_all(conn)
        .await?)
}

/// A sender that a person ignores.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Ignored {
    pub address: String,
    pub ignored_by: String,
    pub created_at: DateTime<Utc>,
}

/// Lists ignored senders, the latest first.
pub async fn ignored(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<Ignored>> {
    Ok(sqlx::query_as(
        "select address, ignored_by, created_at from tributary.ignored_senders where tenant_id = $1
         order by created_at desc, address limit $2",
    )
    .bind(tenant_id.0)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// Ignores a sender; again, it stays ignored.
pub async fn ignore(conn: &mut PgConnection, tenant_id: TenantId, address: &str, by: &str) -> Result<()> {
    let sql = "insert into tributary.ignored_senders (tenant_id, address, ignored_by) values ($1, $2, $3) on conflict do nothing";
    sqlx::query(sql).bind(tenant_id.0).bind(address).bind(by).execute(conn).await?;
    Ok(())
}

/// Ends that a sender is ignored. `false`: it was not.
pub async fn restore(conn: &mut PgConnection, tenant_id: TenantId, address: &str) -> Result<bool> {
    let sql = "delete from tributary.ignored_senders where tenant_id = $1 and address = $2";
    Ok(sqlx::query(sql).bind(tenant_id.0).bind(address).execute(conn).await?.rows_affected() == 1)
}
