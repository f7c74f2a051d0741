//! What grows is cut here. Each table names its retention in its migration; this is the one place that does it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::Result;
use crate::queue::Queue;

/// A table that grows, how long its rows stay, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Rule {
    pub table: &'static str,
    pub keep_days: i32,
    pub what: &'static str,
}

pub const RULES: &[Rule] = &[
    Rule { table: "ai.vectorizer_worker_process", keep_days: 7, what: "workers that went silent" },
    Rule { table: "tributary.sessions", keep_days: 1, what: "sessions and sign-in links after they expired" },
    Rule { table: "tributary.alerts", keep_days: 90, what: "alerts after they closed" },
    Rule { table: "tributary.channel_refusals", keep_days: 30, what: "what channels refused, and why" },
    Rule { table: "tributary.activity_payloads", keep_days: 90, what: "untouched originals of events" },
    Rule { table: "tributary.oauth_states", keep_days: 1, what: "ways back from a provider that nobody took" },
    Rule { table: "tributary.gates", keep_days: 1, what: "turns at providers after their last use" },
    Rule { table: "public.source_events", keep_days: 30, what: "what happened to sources" },
    Rule { table: "public.sync_jobs", keep_days: 90, what: "jobs that are over; the newest of each source stays" },
    Rule { table: "public.sync_failures", keep_days: 90, what: "records that a person left out" },
    Rule {
        table: "pgmq.a_*",
        keep_days: 30,
        what: "skipped and cancelled items; dead ones stay until somebody decides",
    },
];

const STEP: i64 = 5_000;

/// Removes what has outlived its rule; returns how many rows went.
pub async fn enforce(conn: &mut PgConnection, at: Option<DateTime<Utc>>, queues: &[Queue]) -> Result<u64> {
    let mut gone = 0;
    let made_by_pgai: bool =
        sqlx::query_scalar("select to_regclass('ai.pgai_lib_version') is not null").fetch_one(&mut *conn).await?;
    if !made_by_pgai {
        gone += sqlx::query(
            "delete from ai.vectorizer_worker_process where last_heartbeat < coalesce($1, now()) - interval '7 days'",
        )
        .bind(at)
        .execute(&mut *conn)
        .await?
        .rows_affected();
        gone += sqlx::query(
            "delete from tributary.workers w where not exists (select from ai.vectorizer_worker_process p where p.id = w.process_id)",
        )
        .execute(&mut *conn)
        .await?
        .rows_affected();
    }
    for sql in [
        "delete from tributary.sessions where expires_at < coalesce($1, now()) - interval '1 day'",
        "delete from tributary.alerts where closed_at < coalesce($1, now()) - interval '90 days'",
        "delete from tributary.channel_refusals where created_at < coalesce($1, now()) - interval '30 days'",
        "delete from tributary.activity_payloads where created_at < coalesce($1, now()) - interval '90 days'",
        "delete from tributary.vault v using tributary.oauth_states o where v.tenant_id = o.tenant_id and v.id = o.verifier_vault_id
             and o.created_at < coalesce($1, now()) - interval '1 day'",
        "delete from tributary.oauth_states where created_at < coalesce($1, now()) - interval '1 day'",
        "delete from tributary.gates where used_at < coalesce($1, now()) - interval '1 day'
             and (closed_until is null or closed_until < coalesce($1, now()))",
        "delete from public.source_events where at < coalesce($1, now()) - interval '30 days'",
        "delete from public.sync_jobs j where j.finished_at < coalesce($1, now()) - interval '90 days'
             and exists (select from public.sync_jobs n where n.tenant_id = j.tenant_id and n.source_id = j.source_id and n.id > j.id)",
        "delete from public.sync_failures where skipped_at < coalesce($1, now()) - interval '90 days'",
    ] {
        gone += sqlx::query(sql).bind(at).execute(&mut *conn).await?.rows_affected();
    }
    for queue in queues {
        let sql = format!(
            "delete from pgmq.a_{0} where msg_id in (select msg_id from pgmq.a_{0}
                 where archived_at < coalesce($1, now()) - interval '30 days' and headers ->> 'state' in ('skipped', 'cancelled')
                 order by archived_at limit $2)",
            queue.name()
        );
        let sql: std::sync::Arc<str> = sql.into();
        loop {
            let step =
                sqlx::query(AssertSqlSafe(sql.clone())).bind(at).bind(STEP).execute(&mut *conn).await?.rows_affected();
            gone += step;
            if step < STEP.unsigned_abs() {
                break;
            }
        }
    }
    Ok(gone)
}
