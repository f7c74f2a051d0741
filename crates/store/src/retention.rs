//! Retention: how long rows of growing tables are kept. The upkeep task `retention` enforces the rules, `tributary config` prints them.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::postgres::types::PgInterval;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::Result;
use crate::queue::Queue;

/// How long the rows of one table are kept.
#[derive(Clone, Debug, Serialize)]
pub struct Rule {
    pub table: &'static str,
    pub keep_days: i32,
    pub what: &'static str,
    /// Removes rows that have outlived the rule, repeated until there are none. $1: a fixed clock. $2: how long they are kept. `{a}` is the
    /// archive of each lane in turn.
    #[serde(skip)]
    sql: &'static str,
}

pub const RULES: &[Rule] = &[
    Rule {
        table: "ai.vectorizer_worker_process",
        keep_days: 7,
        what: "workers that went silent",
        sql: "with gone as (
                delete from ai.vectorizer_worker_process
                where last_heartbeat < coalesce($1, now()) - $2 and to_regclass('ai.pgai_lib_version') is null -- else it is pgai's
                returning id)
            delete from tributary.workers w where to_regclass('ai.pgai_lib_version') is null and (process_id in (select id from gone)
                or not exists (select from ai.vectorizer_worker_process p where p.id = w.process_id))",
    },
    Rule {
        table: "tributary.sessions",
        keep_days: 1,
        what: "sessions and sign-in links after they expired",
        sql: "delete from tributary.sessions where expires_at < coalesce($1, now()) - $2",
    },
    Rule {
        table: "tributary.alerts",
        keep_days: 90,
        what: "alerts after they closed",
        sql: "delete from tributary.alerts where closed_at < coalesce($1, now()) - $2",
    },
    Rule {
        table: "tributary.channel_refusals",
        keep_days: 30,
        what: "what channels refused, and why",
        sql: "delete from tributary.channel_refusals where created_at < coalesce($1, now()) - $2",
    },
    Rule {
        table: "tributary.activity_payloads",
        keep_days: 90,
        what: "untouched originals of events",
        sql: "delete from tributary.activity_payloads where created_at < coalesce($1, now()) - $2",
    },
    Rule {
        table: "tributary.oauth_states",
        keep_days: 1,
        what: "ways back from a provider that nobody took",
        sql: "with gone as (
                delete from tributary.oauth_states where created_at < coalesce($1, now()) - $2 returning tenant_id, verifier_vault_id)
            delete from tributary.vault v using gone where v.tenant_id = gone.tenant_id and v.id = gone.verifier_vault_id",
    },
    Rule {
        table: "tributary.gates",
        keep_days: 1,
        what: "turns at providers after their last use",
        sql: "delete from tributary.gates where used_at < coalesce($1, now()) - $2
                and (closed_until is null or closed_until < coalesce($1, now()))",
    },
    Rule {
        table: "public.source_events",
        keep_days: 30,
        what: "what happened to sources",
        sql: "delete from public.source_events where at < coalesce($1, now()) - $2",
    },
    Rule {
        table: "public.sync_jobs",
        keep_days: 90,
        what: "jobs that are over; the newest of each source stays",
        sql: "delete from public.sync_jobs j where j.finished_at < coalesce($1, now()) - $2
                and exists (select from public.sync_jobs n where n.tenant_id = j.tenant_id and n.source_id = j.source_id and n.id > j.id)",
    },
    Rule {
        table: "public.sync_failures",
        keep_days: 90,
        what: "records that a person left out",
        sql: "delete from public.sync_failures where skipped_at < coalesce($1, now()) - $2",
    },
    Rule {
        table: "pgmq.a_*",
        keep_days: 30,
        what: "skipped and cancelled items; dead ones stay until somebody decides",
        sql: "delete from {a} where msg_id in (
                select msg_id from {a} where archived_at < coalesce($1, now()) - $2 and headers ->> 'state' in ('skipped', 'cancelled')
                order by archived_at limit 5000)",
    },
];

/// Removes what has outlived its rule; returns how many rows went.
pub async fn enforce(conn: &mut PgConnection, at: Option<DateTime<Utc>>, queues: &[Queue]) -> Result<u64> {
    let mut gone = 0;
    for rule in RULES {
        let keep = PgInterval { months: 0, days: rule.keep_days, microseconds: 0 };
        let statements: Vec<Arc<str>> = if rule.sql.contains("{a}") {
            queues.iter().map(|queue| rule.sql.replace("{a}", &format!("pgmq.a_{}", queue.name())).into()).collect()
        } else {
            vec![rule.sql.into()]
        };
        for sql in statements {
            loop {
                let step = sqlx::query(AssertSqlSafe(sql.clone())).bind(at).bind(keep).execute(&mut *conn).await?;
                gone += step.rows_affected();
                if step.rows_affected() == 0 {
                    break;
                }
            }
        }
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_about_its_own_table_and_asks_for_its_own_number() {
        for rule in RULES {
            let table = if rule.table == "pgmq.a_*" { "{a}" } else { rule.table };
            assert!(
                rule.sql.contains(&format!("delete from {table} "))
                    || rule.sql.contains(&format!("delete from {table}\n")),
                "{rule:?}"
            );
            assert!(rule.sql.contains("$1") && rule.sql.contains("$2"), "{rule:?}");
            assert!(!rule.sql.contains("interval"), "{rule:?}");
        }
    }
}
