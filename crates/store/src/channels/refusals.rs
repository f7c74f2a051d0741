//! Refused requests, as a channel's owner sees them: the reason, never the body.

use chrono::{DateTime, Utc};
use domain::{ChannelId, TenantId};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// Requests that a channel refused within one second for the same reason, from the same address.
#[derive(Clone, Debug)]
pub struct NewRefusal {
    pub tenant_id: TenantId,
    pub channel_id: ChannelId,
    pub status: u16,
    pub reason: String,
    pub address: String,
    pub n: i32,
}

/// Adds refusals. Those of a tenant that is gone are dropped.
pub async fn add_refusals(conn: &mut PgConnection, refusals: &[NewRefusal]) -> Result<()> {
    sqlx::query(
        "insert into tributary.channel_refusals (tenant_id, channel_id, status, reason, address, n)
         select r.tenant_id, r.channel_id, r.status, r.reason, r.address, r.n
         from unnest($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::int[]) r (tenant_id, channel_id, status, reason, address, n)
         join public.tenants t on t.id = r.tenant_id",
    )
    .bind(refusals.iter().map(|refusal| refusal.tenant_id.0).collect::<Vec<_>>())
    .bind(refusals.iter().map(|refusal| refusal.channel_id.0).collect::<Vec<_>>())
    .bind(refusals.iter().map(|refusal| i32::from(refusal.status)).collect::<Vec<_>>())
    .bind(refusals.iter().map(|refusal| refusal.reason.as_str()).collect::<Vec<_>>())
    .bind(refusals.iter().map(|refusal| refusal.address.as_str()).collect::<Vec<_>>())
    .bind(refusals.iter().map(|refusal| refusal.n).collect::<Vec<_>>())
    .execute(conn)
    .await?;
    Ok(())
}

/// Alike refusals of one second.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Refusal {
    pub status: i32,
    pub reason: String,
    pub address: Option<String>,
    pub n: i32,
    pub created_at: DateTime<Utc>,
}

/// The newest refusals of a channel.
pub async fn refusals(conn: &mut PgConnection, tenant_id: TenantId, id: ChannelId, limit: i64) -> Result<Vec<Refusal>> {
    Ok(sqlx::query_as(
        "select status, reason, address, n, created_at from tributary.channel_refusals
         where tenant_id = $1 and channel_id = $2 order by created_at desc, id desc limit $3",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// A channel that refused requests within the last ten minutes.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Refusing {
    pub channel_id: Uuid,
    pub name: String,
    pub n: i64,
    /// The most frequent one.
    pub reason: String,
}

/// The active channels of a tenant that refused at least `at_least` requests within the last ten minutes, most first.
pub async fn refusing(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    at_least: i64,
) -> Result<Vec<Refusing>> {
    Ok(sqlx::query_as(
        "select r.channel_id, p.name, sum(r.n)::int8 as n, mode() within group (order by r.reason) as reason
         from tributary.channel_refusals r join public.ingestion_providers p on p.tenant_id = r.tenant_id and p.id = r.channel_id
         where r.tenant_id = $1 and r.created_at > (select coalesce($2, now()) - interval '10 minutes') and p.is_active
         group by r.channel_id, p.name having sum(r.n) >= $3 order by n desc, p.name",
    )
    .bind(tenant_id.0)
    .bind(at)
    .bind(at_least)
    .fetch_all(conn)
    .await?)
}
