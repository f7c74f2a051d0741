//! Forgetting a source, a contact or a tenant: what belongs to it is counted first and removed in bites, each a commit of its own. A row without
//! content records what was removed, when and by whom.

mod bite;
mod messages;
mod parts;

use chrono::{DateTime, Utc};
use domain::{ContactId, SourceId, TenantId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

pub use bite::{Bite, BiteCursor, Bitten, MOST_CHUNKS, MOST_ROWS, bite, bites};

use crate::Result;

/// A thing that is forgotten. Its name in a message is the field that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    #[serde(rename = "source_id")]
    Source(SourceId),
    #[serde(rename = "contact_id")]
    Contact(ContactId),
    #[serde(rename = "of_tenant_id")]
    Tenant(TenantId),
}

impl Subject {
    /// Its id, as the statements take it.
    fn id(self) -> String {
        match self {
            Self::Source(id) => id.to_string(),
            Self::Contact(id) => id.to_string(),
            Self::Tenant(id) => id.to_string(),
        }
    }
}

/// So many rows of a kind are counted, and no more: this number, or a larger one, means "at least". A person waits for the count, and the request that
/// asks for the removal makes it too.
pub const MOST_COUNTED: i64 = 100_000;
/// The chunks of so many documents are counted. That reads the documents themselves, not just an index.
pub const MOST_SUMMED: i64 = 20_000;

/// The number of rows that go, by kind. What a subject cannot have is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, sqlx::FromRow)]
#[serde(default)]
pub struct Counted {
    pub activities: i64,
    /// Attachments and recordings.
    pub files: i64,
    pub documents: i64,
    /// At least so many, if there are more than [`MOST_SUMMED`] documents.
    pub chunks: i64,
    pub clients: i64,
    pub contacts: i64,
    pub sources: i64,
    pub channels: i64,
    pub keys: i64,
    pub jobs: i64,
}

impl Counted {
    /// The kinds as the record calls them, and how people call one and several.
    pub fn kinds(&self) -> [(&'static str, i64, [&'static str; 2]); 9] {
        [
            ("activities", self.activities, ["activity", "activities"]),
            ("files", self.files, ["file", "files"]),
            ("documents", self.documents, ["document", "documents"]),
            ("clients", self.clients, ["client", "clients"]),
            ("contacts", self.contacts, ["contact", "contacts"]),
            ("sources", self.sources, ["source", "sources"]),
            ("channels", self.channels, ["channel", "channels"]),
            ("keys", self.keys, ["key", "keys"]),
            ("jobs", self.jobs, ["job", "jobs"]),
        ]
    }
}

/// Counts what would go.
pub async fn count(conn: &mut PgConnection, tenant_id: TenantId, subject: Subject) -> Result<Counted> {
    let sql = match subject {
        Subject::Source(_) => include_str!("../sql/forget_count_source.sql"),
        Subject::Contact(_) => include_str!("../sql/forget_count_contact.sql"),
        Subject::Tenant(_) => include_str!("../sql/forget_count_tenant.sql"),
    };
    let counted = sqlx::query_as(sql).bind(tenant_id.0).bind(subject.id()).bind(MOST_COUNTED);
    let counted = if let Subject::Tenant(_) = subject { counted } else { counted.bind(MOST_SUMMED) };
    Ok(counted.fetch_one(conn).await?)
}

/// Inserts the row that will record what was removed.
pub async fn begin(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    what: &str,
    by: &str,
    counted: &Counted,
) -> Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query("insert into public.forgotten (id, tenant_id, what, by, counted) values ($1, $2, $3, $4, $5)")
        .bind(id)
        .bind(tenant_id.0)
        .bind(what)
        .bind(by)
        .bind(sqlx::types::Json(counted))
        .execute(conn)
        .await?;
    Ok(id)
}

/// Keeps the keys of a contact's e-mail addresses with the record until the removal is complete. The contact's own ones go at once.
pub async fn keep_addresses(conn: &mut PgConnection, tenant_id: TenantId, id: Uuid, contact: ContactId) -> Result<()> {
    sqlx::query(
        "update public.forgotten set address_keys = (
             select array_agg(distinct k.key) from public.contact_keys k where k.tenant_id = $1 and k.contact_id = $3 and k.kind = 'email')
         where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id)
    .bind(contact.0)
    .execute(conn)
    .await?;
    Ok(())
}

/// A record of what was removed, or is being removed.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Line {
    pub id: Uuid,
    pub what: String,
    pub by: String,
    /// The counts when it was asked for.
    #[sqlx(json)]
    pub counted: Counted,
    /// The counts of what is gone so far, by kind.
    pub removed: Value,
    pub asked_at: DateTime<Utc>,
    pub done_at: Option<DateTime<Utc>>,
}

/// Lists a tenant's records, newest first.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<Line>> {
    Ok(sqlx::query_as(
        "select id, what, by, counted, removed, asked_at, done_at from public.forgotten where tenant_id = $1 order by id desc limit $2",
    )
    .bind(tenant_id.0)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// Returns the tenant's sources that are being forgotten now.
pub async fn under_way(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(
        "select (message ->> 'source_id')::uuid from pgmq.q_forget where message ->> 'tenant_id' = $1",
    )
    .bind(tenant_id.to_string())
    .fetch_all(conn)
    .await?)
}

/// Adds to the recorded numbers. `whose` is the tenant of the record.
pub async fn note(conn: &mut PgConnection, whose: TenantId, id: Uuid, kind: &str, n: u64) -> Result<()> {
    sqlx::query(
        "update public.forgotten set removed = removed || jsonb_build_object($3::text, coalesce((removed ->> $3)::bigint, 0) + $4)
         where tenant_id = $1 and id = $2",
    )
    .bind(whose.0)
    .bind(id)
    .bind(kind)
    .bind(i64::try_from(n).unwrap_or(i64::MAX))
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes the subject itself, once nothing of it is left. `false`: something has come meanwhile, and another round has to remove it first. Until the
/// transaction ends, nothing new can refer to the subject.
pub async fn remove_subject(conn: &mut PgConnection, tenant_id: TenantId, subject: Subject) -> Result<bool> {
    let (lock, left, remove) = match subject {
        Subject::Source(_) => (
            "select from public.connected_sources where tenant_id = $1 and id = $2::uuid for update",
            vec!["public.source_documents t where t.tenant_id = $1 and t.source_id = $2::uuid".to_owned()],
            "delete from public.connected_sources where tenant_id = $1 and id = $2::uuid",
        ),
        Subject::Contact(_) => (
            "select from public.contacts where tenant_id = $1 and id = $2::bigint for update",
            ["public.activities", "public.source_documents"]
                .map(|table| format!("{table} t where t.tenant_id = $1 and t.contact_id = $2::bigint"))
                .to_vec(),
            "delete from public.contacts where tenant_id = $1 and id = $2::bigint",
        ),
        Subject::Tenant(_) => (
            "select from public.tenants where id = $1 and id = $2::uuid for update",
            parts::tables_of_tenant(conn).await?.iter().map(parts::Part::found).collect(),
            "delete from public.tenants where id = $1 and id = $2::uuid and not is_operator",
        ),
    };
    let id = subject.id();
    sqlx::query(lock).bind(tenant_id.0).bind(&id).execute(&mut *conn).await?;
    for left in left {
        let is_left = AssertSqlSafe(format!("select exists (select from {left})"));
        if sqlx::query_scalar(is_left).bind(tenant_id.0).bind(&id).fetch_one(&mut *conn).await? {
            return Ok(false);
        }
    }
    if let Subject::Source(_) = subject {
        // A look at what is wrong may have opened one meanwhile.
        sqlx::query("delete from tributary.alerts where tenant_id = $1 and subject = $2")
            .bind(tenant_id.0)
            .bind(&id)
            .execute(&mut *conn)
            .await?;
    }
    sqlx::query(remove).bind(tenant_id.0).bind(&id).execute(conn).await?;
    Ok(true)
}

/// Records that nothing is left.
pub async fn finish(conn: &mut PgConnection, at: Option<DateTime<Utc>>, whose: TenantId, id: Uuid) -> Result<()> {
    sqlx::query("update public.forgotten set done_at = coalesce($3, now()), address_keys = null where tenant_id = $1 and id = $2")
        .bind(whose.0)
        .bind(id)
        .bind(at)
        .execute(conn)
        .await?;
    Ok(())
}
