//! People who own work (table `sales`). An agent's key is a person's.

use domain::{PersonId, TenantId};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Person {
    pub id: i64,
    pub user_id: Option<Uuid>,
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
}

/// The tenant's person with that address, made on first use.
pub async fn ensure(conn: &mut PgConnection, tenant_id: TenantId, email: &str) -> Result<PersonId> {
    sqlx::query(
        "insert into public.sales (tenant_id, email, first_name) values ($1, $2, split_part($2, '@', 1))
         on conflict (tenant_id, lower(email)) do nothing",
    )
    .bind(tenant_id.0)
    .bind(email)
    .execute(&mut *conn)
    .await?;
    let id = sqlx::query_scalar("select id from public.sales where tenant_id = $1 and lower(email) = lower($2)")
        .bind(tenant_id.0)
        .bind(email)
        .fetch_one(conn)
        .await?;
    Ok(PersonId(id))
}

pub async fn list(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Person>> {
    Ok(sqlx::query_as(
        "select id, user_id, email, first_name, last_name from public.sales where tenant_id = $1 order by id",
    )
    .bind(tenant_id.0)
    .fetch_all(conn)
    .await?)
}
