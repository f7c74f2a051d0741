//! The tables from which rows go, and which rows.

use domain::TenantId;
use sqlx::{AssertSqlSafe, PgConnection};

use super::{Subject, messages};
use crate::{Result, bites, clients};

/// The table of clients' records.
const CLIENTS: &str = "public.client_intelligence";

/// Rows of one table that go with a subject, of which there may be very many.
#[derive(Clone, Debug)]
pub struct Part {
    /// The record's name for them, if it counts them.
    pub counted_as: Option<&'static str>,
    table: String,
    /// The condition on a row `t`. $1: the tenant. $2: the subject's id, as text.
    which: String,
}

impl Part {
    fn new(table: &str, which: impl Into<String>, counted_as: Option<&'static str>) -> Self {
        Self { counted_as, table: table.to_owned(), which: which.into() }
    }

    /// The part as a table and a condition, to ask whether it has any row.
    pub(super) fn found(&self) -> String {
        format!("{} t where {}", self.table, self.which)
    }
}

/// Removes up to `limit` rows of a part. Returns how many.
pub(super) async fn remove(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    subject: Subject,
    part: &Part,
    limit: i64,
) -> Result<u64> {
    if part.table == CLIENTS {
        // Before its rows, in the order in which matching takes both.
        clients::matching::lock(conn, tenant_id).await?;
    }
    let sql = AssertSqlSafe(bites::delete(&part.table, &part.which));
    let gone = sqlx::query(sql).bind(tenant_id.0).bind(subject.id()).bind(limit).execute(conn).await?;
    Ok(gone.rows_affected())
}

/// Of a source, beside its documents and messages, in the order in which they go.
pub(super) fn of_source() -> Vec<Part> {
    let of_its = "t.tenant_id = $1 and t.source_id = $2::uuid";
    let of_it_or_its_jobs = "t.tenant_id = $1 and (t.subject = $2
        or t.subject in (select id::text from public.sync_jobs where tenant_id = $1 and source_id = $2::uuid))";
    vec![
        // Before its jobs, by which some are found.
        Part::new("tributary.alerts", of_it_or_its_jobs, None),
        Part::new("tributary.dismissals", of_it_or_its_jobs, None),
        Part::new(
            "tributary.sync_seen",
            "t.job_id = any (array(select id from public.sync_jobs where tenant_id = $1 and source_id = $2::uuid))",
            None,
        ),
        Part::new("public.sync_failures", of_its, None),
        Part::new("public.mail_facts", of_its, None),
        Part::new("public.processed_messages", of_its, None),
        Part::new("public.source_events", of_its, None),
        Part::new("public.document_mentions", of_its, None),
        Part::new("tributary.dirty_clients", of_its, None),
        // A client with a source has an external_id, and the index knows that.
        Part::new(CLIENTS, format!("{of_its} and t.external_id is not null"), Some("clients")),
        // Decisions name its records.
        Part::new(
            "public.client_decisions",
            "t.tenant_id = $1 and (starts_with(t.record, $2 || '/') or starts_with(t.other, $2 || '/'))",
            None,
        ),
        Part::new("tributary.parked", "t.tenant_id = $1 and t.message ->> 'source_id' = $2", None),
        Part::new(
            "public.saved_searches",
            "t.tenant_id = $1 and $2 in (t.query #>> '{filters,source}', t.query #>> '{filters,channel}')",
            None,
        ),
        Part::new("tributary.gates", "strpos(t.key, $2) > 0", None),
        Part::new("public.sync_jobs", of_its, Some("jobs")),
    ]
}

/// Of a contact, beside its activities, documents and messages.
pub(super) fn of_contact() -> Vec<Part> {
    let gone = format!("t.tenant_id = $1 and {}", messages::names_what_is_gone("t.message"));
    vec![
        Part::new("public.contact_keys", "t.tenant_id = $1 and t.contact_id = $2::bigint", None),
        Part::new("public.contact_merges", "t.tenant_id = $1 and t.contact_id = $2::bigint", None),
        Part::new("public.client_decisions", "t.tenant_id = $1 and t.record = 'contact/' || $2", None),
        Part::new("public.saved_searches", "t.tenant_id = $1 and t.query #>> '{filters,contact}' = $2", None),
        Part::new("tributary.parked", gone, None),
        // As rules see the letters that were marked before.
        Part::new(
            "public.mail_facts",
            "t.tenant_id = $1 and exists (select from public.processed_messages p
                 where p.tenant_id = $1 and p.source_id = t.source_id and p.message_id = t.message_id and p.skip_reason = 'forgotten')",
            None,
        ),
    ]
}

/// Of a tenant: gates that name its sources, then every table with a tenant.
pub(super) async fn of_tenant(conn: &mut PgConnection) -> Result<Vec<Part>> {
    let gates =
        "exists (select from public.connected_sources s where s.tenant_id = $1 and strpos(t.key, s.id::text) > 0)";
    let mut parts = vec![Part::new("tributary.gates", gates, None)];
    parts.extend(tables_of_tenant(conn).await?);
    Ok(parts)
}

/// Every table with a `tenant_id`, as the catalog has them, so that a new table needs no line here. A table goes before those that it refers to: no
/// deletion cascades to rows that were not counted.
pub(super) async fn tables_of_tenant(conn: &mut PgConnection) -> Result<Vec<Part>> {
    let mut left: Vec<(String, Vec<String>)> =
        sqlx::query_as(include_str!("../sql/forget_tables.sql")).fetch_all(conn).await?;
    let mut parts = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_free = |table: &str| !left.iter().any(|(other, to)| other != table && to.iter().any(|to| to == table));
        // In a ring of tables, which we do not have, the first one would go first.
        let next = left.iter().position(|(table, _)| is_free(table)).unwrap_or(0);
        let (table, _) = left.remove(next);
        parts.push(Part::new(&table, which(&table), counted_as(&table)));
    }
    Ok(parts)
}

/// A few tables have no index on the tenant: their rows are found by what they belong to.
fn which(table: &str) -> &'static str {
    match table {
        "tributary.sync_seen" => "t.job_id = any (array(select id from public.sync_jobs where tenant_id = $1))",
        "public.document_mentions" | "tributary.dirty_clients" => {
            "t.source_id = any (array(select id from public.connected_sources where tenant_id = $1))"
        }
        _ => "t.tenant_id = $1",
    }
}

fn counted_as(table: &str) -> Option<&'static str> {
    Some(match table {
        "public.activities" => "activities",
        "tributary.activity_attachments" | "tributary.activity_recordings" => "files",
        "public.source_documents" => "documents",
        CLIENTS => "clients",
        "public.contacts" => "contacts",
        "public.connected_sources" => "sources",
        "public.ingestion_providers" => "channels",
        "tributary.api_keys" => "keys",
        "public.sync_jobs" => "jobs",
        _ => return None,
    })
}
