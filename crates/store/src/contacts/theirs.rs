//! A contact's activities and documents, when they become another contact's or nobody's. Rows are locked in the order of their ids, as others lock them.

use domain::{ContactId, TenantId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// Gives up to `limit` of a contact's activities to another contact, or to none; returns them. The caller has them remembered again.
pub async fn move_activities(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    (from, to): (ContactId, Option<ContactId>),
    limit: i64,
) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(
        "update public.activities a set contact_id = $3 where a.tenant_id = $1 and a.id = any (array(
             select o.id from public.activities o where o.tenant_id = $1 and o.contact_id = $2 order by o.id limit $4 for no key update))
         returning a.id",
    )
    .bind(tenant_id.0)
    .bind(from.0)
    .bind(to.map(|id| id.0))
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// Gives those of these activities to a contact that another one has now; returns them.
pub async fn give_back_activities(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    ids: &[Uuid],
    (from, to): (ContactId, ContactId),
) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(
        "update public.activities a set contact_id = $4 where a.tenant_id = $1 and a.id = any (array(
             select o.id from public.activities o where o.tenant_id = $1 and o.id = any($2) and o.contact_id = $3 order by o.id for no key update))
         returning a.id",
    )
    .bind(tenant_id.0)
    .bind(ids)
    .bind(from.0)
    .bind(to.0)
    .fetch_all(conn)
    .await?)
}

/// Gives up to `limit` of a contact's documents to another contact, or to none; returns them. In the order of their ids, as batches lock them.
pub async fn move_documents(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    (from, to): (ContactId, Option<ContactId>),
    limit: i64,
) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(
        "with theirs as materialized (
             select id from public.source_documents where tenant_id = $1 and contact_id = $2 order by id limit $4 for update)
         update public.source_documents d set contact_id = $3 from theirs t where d.tenant_id = $1 and d.id = t.id returning d.id",
    )
    .bind(tenant_id.0)
    .bind(from.0)
    .bind(to.map(|id| id.0))
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// Gives those of these documents to a contact that another one has now.
pub async fn give_back_documents(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    documents: &[Uuid],
    (from, to): (ContactId, ContactId),
) -> Result<()> {
    sqlx::query(
        "with theirs as materialized (
             select id from public.source_documents where tenant_id = $1 and id = any($2) and contact_id = $3 order by id for update)
         update public.source_documents d set contact_id = $4 from theirs t where d.tenant_id = $1 and d.id = t.id",
    )
    .bind(tenant_id.0)
    .bind(documents)
    .bind(from.0)
    .bind(to.0)
    .execute(conn)
    .await?;
    Ok(())
}
