//! Contacts: the people that events come from. Triggers keep a row of `contact_keys` for each address, and the database does the matching.

pub mod merges;
pub mod theirs;

use chrono::{DateTime, Utc};
use domain::{ContactId, PersonId, TenantId};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

#[derive(Clone, Debug, Serialize, Deserialize, sqlx::FromRow)]
pub struct Contact {
    pub id: i64,
    pub email: Option<String>,
    pub phone_number: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub company: Option<String>,
    pub tags: Vec<String>,
    pub created_at: DateTime<Utc>,
}

impl Contact {
    /// A name to show: the best of the known fields.
    pub fn called(&self) -> String {
        crate::people::called([&self.first_name, &self.last_name], [&self.email, &self.phone_number])
    }
}

/// The known fields of a contact. Addresses are normalised.
#[derive(Clone, Debug, Default)]
pub struct NewContact {
    pub email: Option<String>,
    pub phone_number: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub company: Option<String>,
    pub tags: Vec<String>,
    pub person_id: Option<PersonId>,
}

const COLUMNS: &str = "id, email, phone_number, first_name, last_name, company, tags, created_at";

pub async fn create(conn: &mut PgConnection, tenant_id: TenantId, new: &NewContact) -> Result<ContactId> {
    let id = sqlx::query_scalar(
        "insert into public.contacts (tenant_id, email, phone_number, first_name, last_name, company, tags, sales_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8) returning id",
    )
    .bind(tenant_id.0)
    .bind(&new.email)
    .bind(&new.phone_number)
    .bind(&new.first_name)
    .bind(&new.last_name)
    .bind(&new.company)
    .bind(&new.tags)
    .bind(new.person_id.map(|person| person.0))
    .fetch_one(conn)
    .await?;
    Ok(ContactId(id))
}

/// The outcome of an imported row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    Created,
    Updated,
    Unchanged,
}

/// Imports a contact. If exactly one contact has one of the addresses, its missing fields are added; nothing is overwritten.
pub async fn import(conn: &mut PgConnection, tenant_id: TenantId, new: &NewContact) -> Result<Imported> {
    let mut known: Option<i64> = None;
    for address in [&new.email, &new.phone_number].into_iter().flatten() {
        if known.is_none() {
            known = sqlx::query_scalar(
                "select k.contact_id from tributary.address_key($2) a
                 join public.contact_keys k on k.tenant_id = $1 and k.kind = a.kind and k.key = a.key
                 order by k.origin = 'added' desc, k.contact_id limit 1",
            )
            .bind(tenant_id.0)
            .bind(address)
            .fetch_optional(&mut *conn)
            .await?;
        }
    }
    let Some(id) = known else {
        create(conn, tenant_id, new).await?;
        return Ok(Imported::Created);
    };
    let is_changed = complete(conn, tenant_id, ContactId(id), new).await?;
    Ok(if is_changed { Imported::Updated } else { Imported::Unchanged })
}

/// Adds the fields that a contact lacks. `false`: it lacks none of them.
async fn complete(conn: &mut PgConnection, tenant_id: TenantId, id: ContactId, new: &NewContact) -> Result<bool> {
    Ok(write(conn, include_str!("../sql/contact_complete.sql"), tenant_id, id, new).await? == 1)
}

/// Overwrites a contact's own fields.
pub async fn change(conn: &mut PgConnection, tenant_id: TenantId, id: ContactId, to: &NewContact) -> Result<()> {
    let sql = "update public.contacts set email = $3, phone_number = $4, first_name = $5, last_name = $6, company = $7, tags = $8
         where tenant_id = $1 and id = $2";
    write(conn, sql, tenant_id, id, to).await?;
    Ok(())
}

/// Executes a statement on a contact, $1 and $2, and its own fields, $3 to $8. Returns the number of rows that it changed.
async fn write(
    conn: &mut PgConnection,
    sql: &'static str,
    tenant_id: TenantId,
    id: ContactId,
    fields: &NewContact,
) -> Result<u64> {
    let written = sqlx::query(sql)
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(&fields.email)
        .bind(&fields.phone_number)
        .bind(&fields.first_name)
        .bind(&fields.last_name)
        .bind(&fields.company)
        .bind(&fields.tags)
        .execute(conn)
        .await?;
    Ok(written.rows_affected())
}

/// The addresses that people added to a contact, beside its own e-mail address and number.
pub async fn added_addresses(conn: &mut PgConnection, tenant_id: TenantId, id: ContactId) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(
        "select distinct address from public.contact_keys
         where tenant_id = $1 and contact_id = $2 and origin = 'added' and address is not null order by address",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_all(conn)
    .await?)
}

/// Takes an added address from a contact. `false`: it has no such address. Its own e-mail address and number stay.
pub async fn remove_address(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: ContactId,
    address: &str,
) -> Result<bool> {
    let removed =
        sqlx::query("delete from public.contact_keys where tenant_id = $1 and contact_id = $2 and address = $3 and origin = 'added'")
            .bind(tenant_id.0)
            .bind(id.0)
            .bind(address)
            .execute(&mut *conn)
            .await?;
    // A key that a person added stands for the contact's own address too.
    sqlx::query(
        "select tributary.add_contact_key($1, c.id, a.address, 'contact')
         from public.contacts c cross join lateral (values (c.email), (c.phone_number)) a (address)
         where c.tenant_id = $1 and c.id = $2 and a.address is not null",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .execute(conn)
    .await?;
    Ok(removed.rows_affected() > 0)
}

/// Removes a contact that has no activities or documents any more, with its addresses, merges, decisions about clients, and the saved searches for it.
pub async fn delete(conn: &mut PgConnection, tenant_id: TenantId, id: ContactId) -> Result<()> {
    for sql in [
        "delete from public.client_decisions where tenant_id = $1 and record = 'contact/' || $2::bigint",
        "delete from public.saved_searches where tenant_id = $1 and query #>> '{filters,contact}' = ($2::bigint)::text",
        "delete from public.contacts where tenant_id = $1 and id = $2",
    ] {
        sqlx::query(sql).bind(tenant_id.0).bind(id.0).execute(&mut *conn).await?;
    }
    Ok(())
}

/// The filter of a list of contacts.
#[derive(Clone, Debug, Default)]
pub struct Wanted<'a> {
    /// Matches a part of a name, a company or an address.
    pub text: Option<&'a str>,
    /// Lists contacts with a smaller id than this.
    pub before: Option<ContactId>,
    pub limit: i64,
}

/// Lists contacts, newest first.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, wanted: &Wanted<'_>) -> Result<Vec<Contact>> {
    let pattern =
        wanted.text.map(|text| format!("%{}%", text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")));
    let sql = format!(
        "select {COLUMNS} from public.contacts c where tenant_id = $1 and ($2::int8 is null or id < $2)
             and ($3::text is null or concat_ws(' ', first_name, last_name, company, email, phone_number) ilike $3)
         order by id desc limit $4"
    );
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql))
        .bind(tenant_id.0)
        .bind(wanted.before.map(|id| id.0))
        .bind(pattern)
        .bind(wanted.limit)
        .fetch_all(conn)
        .await?)
}

pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, id: ContactId) -> Result<Option<Contact>> {
    let sql = format!("select {COLUMNS} from public.contacts where tenant_id = $1 and id = $2");
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant_id.0).bind(id.0).fetch_optional(conn).await?)
}

/// Loads several contacts, in no order.
pub async fn get_all(conn: &mut PgConnection, tenant_id: TenantId, ids: &[i64]) -> Result<Vec<Contact>> {
    let sql = format!("select {COLUMNS} from public.contacts where tenant_id = $1 and id = any($2)");
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant_id.0).bind(ids).fetch_all(conn).await?)
}

/// The addresses by which a contact is recognised, as they were entered.
pub async fn addresses(conn: &mut PgConnection, tenant_id: TenantId, id: ContactId) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(
        "select address from public.contact_keys where tenant_id = $1 and contact_id = $2 and address is not null
         group by address order by min(kind) desc, address",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_all(conn)
    .await?)
}

/// Finds the contact of an address by the same rules as for events.
pub async fn find(conn: &mut PgConnection, tenant_id: TenantId, address: &str) -> Result<Option<ContactId>> {
    let found: Option<i64> = sqlx::query_scalar("select tributary.match_contact($1, $2)")
        .bind(tenant_id.0)
        .bind(address)
        .fetch_one(conn)
        .await?;
    Ok(found.map(ContactId))
}

/// Adds an address to a contact, so that events of the address match it from now on.
pub async fn add_address(conn: &mut PgConnection, tenant_id: TenantId, id: ContactId, address: &str) -> Result<()> {
    sqlx::query("select tributary.add_contact_key($1, $2, $3, 'added')")
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(address)
        .execute(conn)
        .await?;
    Ok(())
}

/// Locks a contact. `false`: there is none.
pub async fn lock(conn: &mut PgConnection, tenant_id: TenantId, id: ContactId) -> Result<bool> {
    let locked = sqlx::query("select from public.contacts where tenant_id = $1 and id = $2 for update")
        .bind(tenant_id.0)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(locked.rows_affected() == 1)
}

/// Removes a contact's name, addresses and merges, before the contact goes: no event is linked to it any more.
pub async fn blank(conn: &mut PgConnection, tenant_id: TenantId, id: ContactId) -> Result<()> {
    for sql in [
        // Before its addresses, by which it is found, in whatever notation it was ignored.
        "delete from tributary.ignored_senders i where i.tenant_id = $1 and exists (
             select from public.contact_keys k where k.tenant_id = $1 and k.contact_id = $2
                 and (i.address in (k.key, k.address) or (tributary.address_key(i.address)).key = k.key))",
        "update public.contacts set email = null, phone_number = null, first_name = null, last_name = null, company = null, tags = '{}'
         where tenant_id = $1 and id = $2",
        "delete from public.contact_keys where tenant_id = $1 and contact_id = $2",
        "delete from public.contact_merges where tenant_id = $1 and contact_id = $2",
    ] {
        sqlx::query(sql).bind(tenant_id.0).bind(id.0).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Creates contacts for addresses, in the order of their keys, so that two groups cannot deadlock.
pub async fn ensure_all(conn: &mut PgConnection, wanted: &[(TenantId, &str, Option<PersonId>)]) -> Result<()> {
    sqlx::query(include_str!("../sql/contacts_ensure.sql"))
        .bind(wanted.iter().map(|(tenant_id, ..)| tenant_id.0).collect::<Vec<Uuid>>())
        .bind(wanted.iter().map(|(_, address, _)| *address).collect::<Vec<_>>())
        .bind(wanted.iter().map(|(.., person_id)| person_id.map(|person| person.0)).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(())
}
