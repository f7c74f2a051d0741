//! Activities that come by no channel: people write them, and programs insert them.

use domain::{ActivityId, ActivityType, ClientId, ContactId, Direction, PersonId, ProcessingStatus, TenantId};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// An activity to be inserted. Its id is made before, so that inserting it a second time is recognised.
#[derive(Clone, Debug, Serialize)]
pub struct NewActivity {
    pub id: ActivityId,
    pub r#type: ActivityType,
    pub direction: Direction,
    pub person_id: Option<PersonId>,
    pub contact_id: Option<ContactId>,
    pub status: ProcessingStatus,
    pub raw_data: Value,
    pub processed_data: Option<Value>,
    pub metadata: Value,
}

/// Inserts activities and returns the ids of the new ones. The others' ids are taken.
pub async fn insert(conn: &mut PgConnection, tenant_id: TenantId, new: &[NewActivity]) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(include_str!("sql/activities_write.sql"))
        .bind(tenant_id.0)
        .bind(sqlx::types::Json(new))
        .fetch_all(conn)
        .await?)
}

/// Keeps these contacts from going until the transaction ends, and returns those that are there.
pub async fn hold_contacts(conn: &mut PgConnection, tenant_id: TenantId, ids: &[i64]) -> Result<Vec<i64>> {
    let sql = "select id from public.contacts where tenant_id = $1 and id = any($2) order by id for key share";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(ids).fetch_all(conn).await?)
}

/// The same for people.
pub async fn hold_people(conn: &mut PgConnection, tenant_id: TenantId, ids: &[i64]) -> Result<Vec<i64>> {
    let sql = "select id from public.sales where tenant_id = $1 and id = any($2) order by id for key share";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(ids).fetch_all(conn).await?)
}

/// Names the client that an activity is about. A record that is gone by now is no client.
pub async fn link_client(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: ActivityId,
    client_id: ClientId,
) -> Result<()> {
    sqlx::query(
        "insert into public.activity_clients (tenant_id, activity_id, record_id)
         select c.tenant_id, $2, c.id from public.client_intelligence c where c.tenant_id = $1 and c.id = $3 for key share
         on conflict do nothing",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(client_id.0)
    .execute(conn)
    .await?;
    Ok(())
}
