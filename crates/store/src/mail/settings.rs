//! The settings of a mailbox.

use domain::{SourceId, TenantId};
use sqlx::PgConnection;

use crate::Result;

/// The places of a mailbox that are read, as a person chose them. None: nobody chose.
pub async fn places(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<Option<Vec<String>>> {
    let places: Option<Option<Vec<String>>> =
        sqlx::query_scalar("select mail_places from public.connected_sources where tenant_id = $1 and id = $2")
            .bind(tenant_id.0)
            .bind(source_id.0)
            .fetch_optional(conn)
            .await?;
    Ok(places.flatten())
}

/// Stores the places to be read. `false`: they were these already, or there is no such source.
pub async fn set_places(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    places: &[&str],
) -> Result<bool> {
    let set = sqlx::query(
        "update public.connected_sources set mail_places = $3
         where tenant_id = $1 and id = $2 and mail_places is distinct from $3",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(places)
    .execute(conn)
    .await?;
    Ok(set.rows_affected() == 1)
}
