//! The reading and writing of what matching works on.

use domain::TenantId;
use domain::matching::{Decisions, Kind};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// Any number: it keeps this lock apart from others. A record that goes takes it too (`tributary.client_gone`).
pub(crate) const SEED: i64 = 0x0063_6c69_656e_7473;

/// Lets one transaction at a time write a tenant's records of clients and match them, until its end.
pub async fn lock(conn: &mut PgConnection, tenant_id: TenantId) -> Result<()> {
    sqlx::query("select pg_advisory_xact_lock(hashtextextended($1, $2))")
        .bind(tenant_id.0.to_string())
        .bind(SEED)
        .execute(conn)
        .await?;
    Ok(())
}

/// A record, as matching sees it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Matchable {
    pub id: Uuid,
    pub client_id: Uuid,
    pub client_name: String,
    pub reference: String,
    pub source: String,
    pub provider: Option<String>,
    pub identity: Value,
    pub keys: Vec<String>,
    pub marks: i64,
}

impl Matchable {
    pub fn kind(&self) -> Kind {
        match self.identity["kind"].as_str() {
            Some("person") => Kind::Person,
            Some("curated") => Kind::Curated,
            _ => Kind::Organisation,
        }
    }
}

/// Tenants with records that wait to be matched.
pub async fn waiting(conn: &mut PgConnection) -> Result<Vec<Uuid>> {
    let sql = "select distinct tenant_id from public.client_intelligence where marks <> matched_marks";
    Ok(sqlx::query_scalar(sql).fetch_all(conn).await?)
}

/// Up to `limit` records of a tenant that wait to be matched.
pub async fn unmatched(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<Uuid>> {
    let sql = "select id from public.client_intelligence where tenant_id = $1 and marks <> matched_marks limit $2";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(limit).fetch_all(conn).await?)
}

/// Reads the records that are among `ids`, have one of the keys, or are of one of the clients; those that are known are left out.
pub async fn reach(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    ids: &[Uuid],
    keys: &[String],
    clients: &[Uuid],
    known: &[Uuid],
) -> Result<Vec<Matchable>> {
    Ok(sqlx::query_as(include_str!("../sql/clients_reach.sql"))
        .bind(tenant_id.0)
        .bind(ids)
        .bind(keys)
        .bind(clients)
        .bind(known)
        .fetch_all(conn)
        .await?)
}

/// Reads the decisions about these records.
pub async fn decided(conn: &mut PgConnection, tenant_id: TenantId, references: &[String]) -> Result<Decisions> {
    let rows: Vec<(String, Option<String>)> = sqlx::query_as(
        "select record, other from public.client_decisions where tenant_id = $1 and (record = any($2) or other = any($2)) order by record, other",
    )
    .bind(tenant_id.0)
    .bind(references)
    .fetch_all(conn)
    .await?;
    let mut decisions = Decisions::default();
    for (record, other) in rows {
        match other {
            Some(other) => decisions.merged.push((record, other)),
            None => decisions.apart.push(record),
        }
    }
    Ok(decisions)
}

/// The client of a record, as matching found it.
#[derive(Clone, Debug)]
pub struct Matched {
    pub id: Uuid,
    pub client_id: Uuid,
    pub matched_by: Option<Value>,
    pub owns: Vec<String>,
    /// The record's marks when it was read.
    pub marks: i64,
}

/// Writes what matching found, where it differs. When the records' facts changed is left alone: the same records are the same rows again.
pub async fn write(conn: &mut PgConnection, tenant_id: TenantId, matched: &[Matched]) -> Result<u64> {
    let owns: Vec<Value> = matched.iter().map(|one| Value::from(one.owns.clone())).collect();
    let written = sqlx::query(include_str!("../sql/clients_match.sql"))
        .bind(tenant_id.0)
        .bind(matched.iter().map(|one| one.id).collect::<Vec<_>>())
        .bind(matched.iter().map(|one| one.client_id).collect::<Vec<_>>())
        .bind(matched.iter().map(|one| one.matched_by.clone()).collect::<Vec<_>>())
        .bind(owns)
        .bind(matched.iter().map(|one| one.marks).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(written.rows_affected())
}
