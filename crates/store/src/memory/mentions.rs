//! The documents that mention each client, written with the documents; and marks on the clients whose facts must be derived again.

use domain::{Record, TenantId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// Replaces the mentions of these documents, and marks every client concerned: those mentioned before and now, and those that mention
/// these documents.
pub async fn replace(conn: &mut PgConnection, tenant_id: TenantId, records: &[&Record]) -> Result<()> {
    let mut names: Vec<(Uuid, &str)> =
        records.iter().map(|record| (record.source_id.0, record.external_id.as_str())).collect();
    names.sort_unstable();
    let mut mentions: Vec<(Uuid, &str, &str)> = Vec::new();
    for record in records.iter().filter(|record| !record.is_deleted) {
        let mentioned = record.mentions.iter().flatten();
        mentions.extend(mentioned.map(|m| (record.source_id.0, record.external_id.as_str(), m.as_str())));
    }
    sqlx::query(include_str!("../sql/mentions_mark.sql"))
        .bind(tenant_id.0)
        .bind(names.iter().map(|(source, _)| *source).collect::<Vec<_>>())
        .bind(names.iter().map(|(_, name)| *name).collect::<Vec<_>>())
        .bind(mentions.iter().map(|(source, ..)| *source).collect::<Vec<_>>())
        .bind(mentions.iter().map(|(_, _, mentioned)| *mentioned).collect::<Vec<_>>())
        .execute(&mut *conn)
        .await?;
    sqlx::query(include_str!("../sql/mentions_replace.sql"))
        .bind(tenant_id.0)
        .bind(names.iter().map(|(source, _)| *source).collect::<Vec<_>>())
        .bind(names.iter().map(|(_, name)| *name).collect::<Vec<_>>())
        .bind(mentions.iter().map(|(source, ..)| *source).collect::<Vec<_>>())
        .bind(mentions.iter().map(|(_, name, _)| *name).collect::<Vec<_>>())
        .bind(mentions.iter().map(|(_, _, mentioned)| *mentioned).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(())
}
