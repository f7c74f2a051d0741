//! Contacts that were made part of another: what moves, what is kept of them, and how that is undone. A contact may have very many activities, so they
//! move in bites; the record of the merge says which have moved.

use chrono::{DateTime, Utc};
use domain::{ContactId, TenantId, words};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Contact, NewContact};
use crate::Result;

/// A contact that is part of another now.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Merge {
    pub id: Uuid,
    /// The contact that it is part of.
    pub contact_id: i64,
    /// The contact as it was.
    #[sqlx(json)]
    pub merged: Merged,
    pub activities: Vec<Uuid>,
    pub documents: Vec<Uuid>,
    pub merged_by: String,
    pub merged_at: DateTime<Utc>,
    #[sqlx(try_from = "String")]
    pub state: MergeState,
}

words! {
    /// How far a merge is.
    MergeState {
        /// Activities and documents are on their way.
        Merging = "merging",
        Merged = "merged",
        /// They are on their way back.
        Undoing = "undoing",
    }
}

#[derive(Clone, Debug, serde::Deserialize)]
pub struct Merged {
    pub contact: Contact,
}

const COLUMNS: &str = "id, contact_id, merged, activities, documents, merged_by, merged_at, state";

/// Lists the contacts that were made part of this one, the latest first.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, contact_id: ContactId) -> Result<Vec<Merge>> {
    let sql = format!(
        "select {COLUMNS} from public.contact_merges where tenant_id = $1 and contact_id = $2 order by merged_at desc, id desc limit 100"
    );
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant_id.0).bind(contact_id.0).fetch_all(conn).await?)
}

/// Reads a merge and locks it.
pub async fn lock(conn: &mut PgConnection, tenant_id: TenantId, id: Uuid) -> Result<Option<Merge>> {
    let sql = format!("select {COLUMNS} from public.contact_merges where tenant_id = $1 and id = $2 for update");
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant_id.0).bind(id).fetch_optional(conn).await?)
}

/// Finds the merge of these two that was begun and has not come to its end.
pub async fn unfinished(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    (into, other): (ContactId, ContactId),
) -> Result<Option<Uuid>> {
    let sql = "select id from public.contact_merges
         where tenant_id = $1 and contact_id = $2 and merged #>> '{contact,id}' = $3 and state = 'merging'";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(into.0).bind(other.to_string()).fetch_optional(conn).await?)
}

/// Whether a merge that this contact is part of is under way, or being undone.
pub async fn is_unfinished(conn: &mut PgConnection, tenant_id: TenantId, id: ContactId) -> Result<bool> {
    let sql = "select exists (select from public.contact_merges
         where tenant_id = $1 and state <> 'merged' and (contact_id = $2 or (merged #>> '{contact,id}')::bigint = $2))";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(id.0).fetch_one(conn).await?)
}

pub async fn set_state(conn: &mut PgConnection, tenant_id: TenantId, id: Uuid, state: MergeState) -> Result<()> {
    let sql = "update public.contact_merges set state = $3 where tenant_id = $1 and id = $2";
    sqlx::query(sql).bind(tenant_id.0).bind(id).bind(state.as_str()).execute(conn).await?;
    Ok(())
}

/// Makes a contact part of another, but for its activities and documents: records it, and moves addresses, missing fields, decisions about clients and saved
/// searches. The other contact is empty afterwards. Both are locked.
pub async fn begin(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    (into, other): (ContactId, &Contact),
    by: &str,
) -> Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query(include_str!("../sql/contact_merge_begin.sql"))
        .bind(id)
        .bind(tenant_id.0)
        .bind(into.0)
        .bind(other.id)
        .bind(by)
        .bind(at)
        .execute(&mut *conn)
        .await?;
    let fields = NewContact {
        email: other.email.clone(),
        phone_number: other.phone_number.clone(),
        first_name: other.first_name.clone(),
        last_name: other.last_name.clone(),
        company: other.company.clone(),
        tags: other.tags.clone(),
        person_id: None,
    };
    super::complete(conn, tenant_id, into, &fields).await?;
    for sql in [
        "select tributary.add_contact_key($1, $2, k.address, 'added') from (
             select distinct address from public.contact_keys where tenant_id = $1 and contact_id = $3 and address is not null) k",
        // What a person said about the contact that stays goes before what was said about the other one.
        "delete from public.client_decisions d where d.tenant_id = $1 and d.record = 'contact/' || $3::bigint
             and exists (select from public.client_decisions o where o.tenant_id = $1 and o.record = 'contact/' || $2::bigint)",
        "update public.client_decisions set record = 'contact/' || $2::bigint where tenant_id = $1 and record = 'contact/' || $3::bigint",
        "update public.saved_searches set query = jsonb_set(query, '{filters,contact}', to_jsonb($2::bigint))
         where tenant_id = $1 and query #>> '{filters,contact}' = ($3::bigint)::text",
    ] {
        sqlx::query(sql).bind(tenant_id.0).bind(into.0).bind(other.id).execute(&mut *conn).await?;
    }
    super::blank(conn, tenant_id, ContactId(other.id)).await?;
    Ok(id)
}

/// Notes what has moved.
pub async fn note(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: Uuid,
    activities: &[Uuid],
    documents: &[Uuid],
) -> Result<()> {
    let sql = "update public.contact_merges set activities = activities || $3, documents = documents || $4 where tenant_id = $1 and id = $2";
    sqlx::query(sql).bind(tenant_id.0).bind(id).bind(activities).bind(documents).execute(conn).await?;
    Ok(())
}

/// Gives everything back but activities and documents: the contact is there again, with its addresses, decisions, saved searches and merges. What the other
/// one had of its own stays. Safe to repeat.
pub async fn take_back(conn: &mut PgConnection, tenant_id: TenantId, merge: &Merge) -> Result<()> {
    for sql in [
        include_str!("../sql/contact_merge_restore.sql"),
        include_str!("../sql/contact_merge_undo_fields.sql"),
        "delete from public.contact_keys k using public.contact_merges m
         where m.tenant_id = $1 and m.id = $2 and k.tenant_id = $1 and k.contact_id = m.contact_id and k.origin = 'added'
             and k.address in (select x ->> 'address' from jsonb_array_elements(m.merged -> 'keys') x)
             and not m.merged -> 'own' ? k.address",
        // Its own addresses may have been among those.
        "select tributary.add_contact_key($1, c.id, a.address, 'contact')
         from public.contact_merges m join public.contacts c on c.tenant_id = $1 and c.id = m.contact_id
         cross join lateral (values (c.email), (c.phone_number)) a (address)
         where m.tenant_id = $1 and m.id = $2 and a.address is not null",
        "select tributary.add_contact_key($1, (m.merged #>> '{contact,id}')::bigint, x ->> 'address', 'added')
         from public.contact_merges m cross join lateral jsonb_array_elements(m.merged -> 'keys') x
         where m.tenant_id = $1 and m.id = $2 and x ->> 'origin' = 'added'",
        "delete from public.client_decisions d using public.contact_merges m
         where m.tenant_id = $1 and m.id = $2 and d.tenant_id = $1
             and d.id in (select (x ->> 'id')::uuid from jsonb_array_elements(m.merged -> 'decisions') x)",
        "insert into public.client_decisions
         select d.* from public.contact_merges m, lateral jsonb_populate_recordset(null::public.client_decisions, m.merged -> 'decisions') d
         where m.tenant_id = $1 and m.id = $2 on conflict do nothing",
        "update public.saved_searches s set query = jsonb_set(s.query, '{filters,contact}', m.merged #> '{contact,id}')
         from public.contact_merges m
         where m.tenant_id = $1 and m.id = $2 and s.tenant_id = $1 and m.merged -> 'searches' ? s.id::text
             and s.query #>> '{filters,contact}' = m.contact_id::text",
        "insert into public.contact_merges
         select i.* from public.contact_merges m, lateral jsonb_populate_recordset(null::public.contact_merges, m.merged -> 'merges') i
         where m.tenant_id = $1 and m.id = $2 on conflict do nothing",
    ] {
        sqlx::query(sql).bind(tenant_id.0).bind(merge.id).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Removes the record of a merge that is undone.
pub async fn remove(conn: &mut PgConnection, tenant_id: TenantId, id: Uuid) -> Result<()> {
    let sql = "delete from public.contact_merges where tenant_id = $1 and id = $2";
    sqlx::query(sql).bind(tenant_id.0).bind(id).execute(conn).await?;
    Ok(())
}
