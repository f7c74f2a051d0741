//! Acts of people on activities: link them to a contact, retry them, skip them.

use domain::activity::SKIPPED;
use domain::{ActivityId, ContactId, TenantId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// Links an activity to a contact. `false`: there is no such activity or contact. The caller has it remembered again.
pub async fn link(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId, contact_id: ContactId) -> Result<bool> {
    let linked = sqlx::query(
        "update public.activities set contact_id = c.id from public.contacts c
         where activities.tenant_id = $1 and activities.id = $2 and c.tenant_id = $1 and c.id = $3",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(contact_id.0)
    .execute(conn)
    .await?;
    Ok(linked.rows_affected() == 1)
}

/// Links activities without a contact to the contact that has their address now, or only those of this contact; returns them. The caller has them
/// remembered again.
pub async fn match_again(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    contact_id: Option<ContactId>,
) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(include_str!("../sql/activities_match_again.sql"))
        .bind(tenant_id.0)
        .bind(contact_id.map(|contact| contact.0))
        .fetch_all(conn)
        .await?)
}

/// Replays failed activities as if they had never failed, and removes their dead letters. Returns those that had failed.
pub async fn retry(conn: &mut PgConnection, tenant_id: TenantId, ids: &[Uuid]) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(include_str!("../sql/activities_retry.sql"))
        .bind(tenant_id.0)
        .bind(ids)
        .fetch_all(conn)
        .await?)
}

/// Ends an activity unprocessed. It waits for nobody, so it is no dead letter. `false`: it is completed, or there is none.
pub async fn skip(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId, by: &str) -> Result<bool> {
    let skipped: i64 = sqlx::query_scalar(include_str!("../sql/activity_skip.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(by)
        .bind(SKIPPED)
        .fetch_one(conn)
        .await?;
    Ok(skipped == 1)
}
