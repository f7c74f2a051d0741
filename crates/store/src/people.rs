//! People who own activities (table `sales`). An agent's key belongs to a person.

use chrono::{DateTime, Utc};
use domain::{KeyId, PersonId, Role, TenantId};
use serde::Serialize;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::{OnConstraint as _, Result};

/// Counts stop there.
pub const MOST_COUNTED: i64 = 10_000;

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
    /// Whether the built-in agent works for them as an agent of their own would.
    pub built_in_agent: bool,
    /// The kinds of content that their agents get.
    pub processes: Vec<String>,
    /// Their rights after signing in.
    #[sqlx(try_from = "String")]
    pub role: Role,
    pub created_at: DateTime<Utc>,
}

/// Values for a person. None: as it was, or as is usual for a new person. An empty name: no name.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    pub email: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub stale_threshold_minutes: Option<i32>,
    pub allow_remote_processing: Option<bool>,
    pub built_in_agent: Option<bool>,
    pub role: Option<Role>,
}

/// The numbers of things that belong to a person, each up to [`MOST_COUNTED`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Owned {
    pub channels: i64,
    pub activities: i64,
    pub contacts: i64,
    /// Keys that are still good.
    pub keys: i64,
    pub devices: i64,
    /// Signed-in browsers, and links that were not used.
    pub sessions: i64,
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

const COLUMNS: &str = "id, user_id, email, first_name, last_name, stale_threshold_minutes, allow_remote_processing, built_in_agent, processes, role, created_at";
const EMAIL_TAKEN: &str = "somebody has that e-mail address already";

pub async fn list(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Person>> {
    let sql = format!("select {COLUMNS} from public.sales where tenant_id = $1 order by id");
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(tenant_id.0).fetch_all(conn).await?)
}

pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, id: PersonId) -> Result<Option<Person>> {
    let sql = format!("select {COLUMNS} from public.sales where tenant_id = $1 and id = $2");
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(tenant_id.0).bind(id.0).fetch_optional(conn).await?)
}

/// The same, and keeps others from changing the person until the transaction ends. Activities of theirs still come in.
pub async fn lock(conn: &mut PgConnection, tenant_id: TenantId, id: PersonId) -> Result<Option<Person>> {
    let sql = format!("select {COLUMNS} from public.sales where tenant_id = $1 and id = $2 for no key update");
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(tenant_id.0).bind(id.0).fetch_optional(conn).await?)
}

pub async fn insert(conn: &mut PgConnection, tenant_id: TenantId, new: &Fields) -> Result<PersonId> {
    let inserted = sqlx::query_scalar(
        "insert into public.sales (tenant_id, email, first_name, last_name, stale_threshold_minutes, allow_remote_processing, built_in_agent, role)
         values ($1, $2, nullif($3, ''), nullif($4, ''), coalesce($5, 15), coalesce($6, true), coalesce($7, false), coalesce($8, 'member')) returning id",
    )
    .bind(tenant_id.0)
    .bind(&new.email)
    .bind(&new.first_name)
    .bind(&new.last_name)
    .bind(new.stale_threshold_minutes)
    .bind(new.allow_remote_processing)
    .bind(new.built_in_agent)
    .bind(new.role.map(Role::as_str))
    .fetch_one(conn)
    .await;
    inserted.on_constraint("sales_email_key", EMAIL_TAKEN).map(PersonId)
}

/// Changes a person. `false`: there is no such person.
pub async fn change(conn: &mut PgConnection, tenant_id: TenantId, id: PersonId, change: &Fields) -> Result<bool> {
    let changed = sqlx::query(
        "update public.sales set email = coalesce($3, email),
             first_name = case when $4::text is null then first_name else nullif($4, '') end,
             last_name = case when $5::text is null then last_name else nullif($5, '') end,
             stale_threshold_minutes = coalesce($6, stale_threshold_minutes),
             allow_remote_processing = coalesce($7, allow_remote_processing), built_in_agent = coalesce($8, built_in_agent),
             role = coalesce($9, role)
         where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(&change.email)
    .bind(&change.first_name)
    .bind(&change.last_name)
    .bind(change.stale_threshold_minutes)
    .bind(change.allow_remote_processing)
    .bind(change.built_in_agent)
    .bind(change.role.map(Role::as_str))
    .execute(conn)
    .await;
    Ok(changed.on_constraint("sales_email_key", EMAIL_TAKEN)?.rows_affected() == 1)
}

pub async fn owned(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: PersonId,
) -> Result<Owned> {
    Ok(sqlx::query_as(include_str!("sql/people_owned.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(MOST_COUNTED)
        .bind(at)
        .fetch_one(conn)
        .await?)
}

/// Revokes a person's keys, ends the sessions of these, and gives back the activities that were claimed with them. Returns the keys that were good until now, and those activities.
pub async fn shut_out(conn: &mut PgConnection, tenant_id: TenantId, id: PersonId) -> Result<(Vec<KeyId>, Vec<Uuid>)> {
    let revoked: Vec<Uuid> = sqlx::query_scalar(
        "update tributary.api_keys set revoked_at = now() where tenant_id = $1 and sales_id = $2 and revoked_at is null returning id",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_all(&mut *conn)
    .await?;
    sqlx::query("delete from tributary.sessions where tenant_id = $1 and key_id = any ($2)")
        .bind(tenant_id.0)
        .bind(&revoked)
        .execute(&mut *conn)
        .await?;
    let given_back: Vec<Uuid> = sqlx::query_scalar(
        "update public.activities set processing_status = 'raw'
         where tenant_id = $1 and processing_status = 'processing' and locked_key = any (array(
             select id from tributary.api_keys where tenant_id = $1 and sales_id = $2))
         returning id",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_all(conn)
    .await?;
    Ok((revoked.into_iter().map(KeyId).collect(), given_back))
}

/// Makes up to `most` of a person's activities everyone's. Returns their ids.
pub async fn disown(conn: &mut PgConnection, tenant_id: TenantId, id: PersonId, most: i64) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(include_str!("sql/people_disown.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(most)
        .fetch_all(conn)
        .await?)
}

/// Makes up to `most` of a person's contacts everyone's. Returns how many.
pub async fn disown_contacts(conn: &mut PgConnection, tenant_id: TenantId, id: PersonId, most: i64) -> Result<u64> {
    let sql = "update public.contacts c set sales_id = null where c.tenant_id = $1 and c.id = any (array(
         select o.id from public.contacts o where o.tenant_id = $1 and o.sales_id = $2 limit $3))";
    Ok(sqlx::query(sql).bind(tenant_id.0).bind(id.0).bind(most).execute(conn).await?.rows_affected())
}

/// Removes a person and their devices. Channels, contacts and activities that are left become everyone's; revoked keys stay, and name nobody.
pub async fn delete(conn: &mut PgConnection, tenant_id: TenantId, id: PersonId) -> Result<()> {
    for sql in [
        "update tributary.api_keys set sales_id = null where tenant_id = $1 and sales_id = $2",
        "delete from public.sales where tenant_id = $1 and id = $2",
    ] {
        sqlx::query(sql).bind(tenant_id.0).bind(id.0).execute(&mut *conn).await?;
    }
    Ok(())
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
