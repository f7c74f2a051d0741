//! People who own activities (table `sales`). An agent's key belongs to a person.

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
    /// The minutes that their activities wait before others may claim them.
    pub stale_threshold_minutes: i32,
    /// Whether others may claim them at all.
    pub allow_remote_processing: bool,
    /// The kinds of content that their agents get.
    pub processes: Vec<String>,
}

impl Person {
    /// A name to show: the best of the known fields.
    pub fn called(&self) -> String {
        called([&self.first_name, &self.last_name], [&self.email])
    }

    /// Whether this is the tenant's system person, in whose name the built-in agent claims.
    pub fn is_built_in(&self) -> bool {
        self.email.as_deref() == Some(crate::claims::BUILT_IN)
    }
}

/// Joins the names, or returns the first address if there are none.
pub(crate) fn called<const N: usize>(names: [&Option<String>; 2], addresses: [&Option<String>; N]) -> String {
    let names = names.into_iter().flatten().map(|name| name.trim());
    let name = names.filter(|name| !name.is_empty()).collect::<Vec<_>>().join(" ");
    let addresses = addresses.into_iter().flatten().map(String::as_str);
    [name.as_str()].into_iter().chain(addresses).find(|text| !text.is_empty()).unwrap_or("Somebody").to_owned()
}

/// Returns the tenant's person with this address, created on first use.
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
        "select id, user_id, email, first_name, last_name, stale_threshold_minutes, allow_remote_processing, processes
         from public.sales where tenant_id = $1 order by id",
    )
    .bind(tenant_id.0)
    .fetch_all(conn)
    .await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_called_by_their_names_else_by_an_address() {
        let some = |text: &str| Some(text.to_owned());
        for (first, last, email, phone, expected) in [
            (some("Ann"), some("Lee"), some("a@x.test"), None, "Ann Lee"),
            (some(" Ann "), None, None, None, "Ann"),
            (None, some("Lee"), None, None, "Lee"),
            (some(" "), some(""), some("a@x.test"), some("+1"), "a@x.test"),
            (None, None, None, some("+1"), "+1"),
            (None, None, some(""), some("+1"), "+1"),
            (None, None, None, None, "Somebody"),
        ] {
            assert_eq!(called([&first, &last], [&email, &phone]), expected, "{first:?} {last:?} {email:?} {phone:?}");
        }
    }
}
