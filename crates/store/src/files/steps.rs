//! The steps of a document whose file is read, each with its outcome.

use chrono::{DateTime, Utc};
use domain::reading::Step;
use domain::{DocumentId, TenantId, words};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;

use crate::Result;

words! {
    StepState {
        Running = "running",
        Done = "done",
        Failed = "failed",
    }
}

/// A step as people see it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct StepRow {
    #[sqlx(try_from = "String")]
    pub step: Step,
    #[sqlx(try_from = "String")]
    pub state: StepState,
    pub outcome: Value,
    pub error: Option<String>,
    pub tries: i32,
    /// By which it was done: the reader's version, `rules`, or a model's name.
    pub done_by: Option<String>,
    pub cost_micros: i64,
    pub begun_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// Notes that a step begins. One that was cut off, or is done again, counts one try more.
pub async fn begin(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: DocumentId,
    step: Step,
) -> Result<()> {
    sqlx::query(
        "insert into public.document_steps as s (tenant_id, document_id, step, state, begun_at) values ($1, $2, $3, 'running', coalesce($4, now()))
         on conflict (tenant_id, document_id, step) do update
         set state = 'running', tries = s.tries + 1, error = null, begun_at = excluded.begun_at, ended_at = null",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(step.as_str())
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// The end of a step.
#[derive(Clone, Debug, Default)]
pub struct Ended<'a> {
    pub outcome: Value,
    /// None: it is done.
    pub error: Option<&'a str>,
    pub done_by: Option<&'a str>,
    pub cost_micros: i64,
}

/// Notes how a step ended.
pub async fn end(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: DocumentId,
    step: Step,
    ended: &Ended<'_>,
) -> Result<()> {
    sqlx::query(
        "insert into public.document_steps as s (tenant_id, document_id, step, state, outcome, error, done_by, cost_micros, begun_at, ended_at)
         values ($1, $2, $3, case when $5::text is null then 'done' else 'failed' end, $4, left($5, 500), left($6, 200), $7, coalesce($8, now()), coalesce($8, now()))
         on conflict (tenant_id, document_id, step) do update
         set state = excluded.state, outcome = excluded.outcome, error = excluded.error, done_by = excluded.done_by,
             cost_micros = s.cost_micros + excluded.cost_micros, ended_at = excluded.ended_at",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(step.as_str())
    .bind(&ended.outcome)
    .bind(ended.error)
    .bind(ended.done_by)
    .bind(ended.cost_micros)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Reads the steps of one of the caller's documents, in the order in which they are done.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, id: DocumentId) -> Result<Vec<StepRow>> {
    Ok(sqlx::query_as(
        "select step, state, outcome, error, tries, done_by, cost_micros, begun_at, ended_at from public.document_steps
         where tenant_id = $1 and document_id = $2 order by array_position(array['classify', 'transcribe', 'extract'], step)",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_all(conn)
    .await?)
}

/// Forgets how these steps of a document ended, so that they are done again.
pub async fn forget(conn: &mut PgConnection, tenant_id: TenantId, id: DocumentId, steps: &[Step]) -> Result<()> {
    sqlx::query("delete from public.document_steps where tenant_id = $1 and document_id = $2 and step = any($3)")
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(steps.iter().map(|step| step.as_str()).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(())
}
