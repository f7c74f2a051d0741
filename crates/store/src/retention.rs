//! Retention: how long rows of growing tables are kept. The upkeep task `retention` enforces the rules, `tributary config` prints them.
//!
//! Rows go in small bites, each a commit of its own: no statement takes long, and nobody waits for one. A rule that fails keeps no other from running.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::postgres::types::PgInterval;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::queue::Queue;
use crate::{Error, Result, bites};

/// The most rows that one statement removes.
const BITE: i64 = 1_000;

/// How long the rows of one table are kept.
#[derive(Clone, Debug, Serialize)]
pub struct Rule {
    pub table: &'static str,
    pub keep_days: i32,
    pub what: &'static str,
    #[serde(skip)]
    outlived: Outlived,
}

/// The rows that have outlived a rule. $1: a fixed clock. $2: how long they are kept.
#[derive(Clone, Copy, Debug)]
enum Outlived {
    /// The condition on a row `t`.
    Where(&'static str),
    /// The statement that removes up to $3 of them, where other rows go with them.
    Statement(&'static str),
}

pub const RULES: &[Rule] = &[
    Rule {
        table: "ai.vectorizer_worker_process",
        keep_days: 7,
        what: "workers that went silent",
        outlived: Outlived::Statement("with outlived as (
                select id from ai.vectorizer_worker_process
                where last_heartbeat < coalesce($1, now()) - $2 and to_regclass('ai.pgai_lib_version') is null -- else it is pgai's
                order by last_heartbeat limit $3),
            gone as (delete from ai.vectorizer_worker_process where id in (select id from outlived) returning id)
            delete from tributary.workers w where to_regclass('ai.pgai_lib_version') is null and w.process_id in (
                select id from gone
                union all
                (select o.process_id from tributary.workers o
                 where not exists (select from ai.vectorizer_worker_process p where p.id = o.process_id) limit $3))"),
    },
    Rule {
        table: "tributary.sessions",
        keep_days: 1,
        what: "sessions and sign-in links after they expired",
        outlived: Outlived::Where("expires_at < coalesce($1, now()) - $2 order by expires_at"),
    },
    Rule {
        table: "tributary.api_keys",
        keep_days: 30,
        what: "keys made for frames after they expired",
        outlived: Outlived::Where("expires_at < coalesce($1, now()) - $2 order by expires_at"),
    },
    Rule {
        table: "tributary.assistant_tokens",
        keep_days: 1,
        what: "codes and tokens of assistants after they expired",
        outlived: Outlived::Where("expires_at < coalesce($1, now()) - $2 order by expires_at"),
    },
    Rule {
        table: "tributary.assistants",
        keep_days: 90,
        what: "assistants after they were revoked, or after their last token expired",
        outlived: Outlived::Where("coalesce(t.revoked_at, t.last_used_at, t.created_at) < coalesce($1, now()) - $2
                and not exists (select from tributary.assistant_tokens k where k.tenant_id = t.tenant_id and k.assistant_id = t.id)"),
    },
    Rule {
        table: "tributary.oauth_clients",
        keep_days: 1,
        what: "programs that registered themselves and that nobody has let in",
        outlived: Outlived::Where("used_at < coalesce($1, now()) - $2
                and not exists (select from tributary.assistants a where a.client_id = t.id) order by used_at"),
    },
    Rule {
        table: "tributary.mcp_calls",
        keep_days: 90,
        what: "what programs asked over MCP",
        outlived: Outlived::Where("at < coalesce($1, now()) - $2 order by at"),
    },
    Rule {
        table: "tributary.alerts",
        keep_days: 90,
        what: "alerts after they closed",
        outlived: Outlived::Where("closed_at < coalesce($1, now()) - $2"),
    },
    Rule {
        table: "tributary.dismissals",
        keep_days: 1,
        what: "dismissals of alerts after they are over",
        outlived: Outlived::Where("until < coalesce($1, now()) - $2 order by until"),
    },
    Rule {
        table: "tributary.channel_refusals",
        keep_days: 30,
        what: "what channels refused, and why",
        outlived: Outlived::Where("created_at < coalesce($1, now()) - $2 order by created_at"),
    },
    Rule {
        table: "tributary.activity_payloads",
        keep_days: 90,
        what: "untouched originals of events",
        outlived: Outlived::Where("created_at < coalesce($1, now()) - $2 order by created_at"),
    },
    Rule {
        table: "tributary.oauth_states",
        keep_days: 1,
        what: "ways back from a provider that nobody took",
        outlived: Outlived::Statement("with gone as (
                delete from tributary.oauth_states where ctid = any (array(
                    select ctid from tributary.oauth_states where created_at < coalesce($1, now()) - $2 order by created_at limit $3))
                returning tenant_id, verifier_vault_id)
            delete from tributary.vault v using gone where v.tenant_id = gone.tenant_id and v.id = gone.verifier_vault_id"),
    },
    Rule {
        table: "tributary.gates",
        keep_days: 1,
        what: "turns at providers after their last use",
        outlived: Outlived::Where("used_at < coalesce($1, now()) - $2
                and (closed_until is null or closed_until < coalesce($1, now()))"),
    },
    Rule {
        table: "public.source_events",
        keep_days: 30,
        what: "what happened to sources",
        outlived: Outlived::Where("at < coalesce($1, now()) - $2 order by at"),
    },
    Rule {
        table: "public.file_previews",
        keep_days: 7,
        what: "pictures of pages; one that somebody looks at again is drawn again",
        outlived: Outlived::Where("created_at < coalesce($1, now()) - $2 order by created_at"),
    },
    // Before the jobs, with which they would go: millions of rows in one statement.
    Rule {
        table: "tributary.sync_seen",
        keep_days: 1,
        what: "what full passes met, after they are over; of one that failed, after the next that is completed, or before its job goes",
        outlived: Outlived::Where(
            "t.job_id = any (array(
                select j.id from public.sync_jobs j where j.finished_at < coalesce($1, now()) - $2 and (j.status <> 'failed' or exists (
                    select from public.sync_jobs n where n.tenant_id = j.tenant_id and n.source_id = j.source_id and n.id > j.id
                        and (n.status = 'completed' or j.finished_at < coalesce($1, now()) - 90 * $2)))))",
        ),
    },
    Rule {
        table: "public.sync_jobs",
        keep_days: 90,
        what: "jobs that are over; the newest of each source stays",
        outlived: Outlived::Where("t.finished_at < coalesce($1, now()) - $2
                and exists (select from public.sync_jobs n where n.tenant_id = t.tenant_id and n.source_id = t.source_id and n.id > t.id)
                and not exists (select from tributary.sync_seen s where s.job_id = t.id)"),
    },
    // A mailbox that is polled has one every minute.
    Rule {
        table: "public.sync_jobs",
        keep_days: 1,
        what: "syncs that found nothing, of sources that are synced every five minutes or oftener; the newest of each source stays",
        outlived: Outlived::Where("t.finished_at < coalesce($1, now()) - $2 and t.status = 'completed' and t.kind in ('delta', 'push')
                and t.items_processed = 0 and t.items_failed = 0 and t.error_count = 0
                and exists (select from public.connected_sources s
                    where s.tenant_id = t.tenant_id and s.id = t.source_id and extract(epoch from s.sync_every) <= 300)
                and exists (select from public.sync_jobs n where n.tenant_id = t.tenant_id and n.source_id = t.source_id and n.id > t.id)"),
    },
    Rule {
        table: "public.sync_failures",
        keep_days: 90,
        what: "records that a person left out",
        outlived: Outlived::Where("skipped_at < coalesce($1, now()) - $2"),
    },
    Rule {
        table: "public.mailbox_checks",
        keep_days: 90,
        what: "days of mailboxes, as their providers counted them",
        outlived: Outlived::Where("t.day < (coalesce($1, now()) - $2)::date"),
    },
    Rule {
        table: "public.mail_facts",
        keep_days: 35,
        what: "what the rules of mailboxes see of letters",
        outlived: Outlived::Where("received_at < coalesce($1, now()) - $2 order by received_at"),
    },
    Rule {
        table: "pgmq.a_*",
        keep_days: 30,
        what: "skipped and cancelled items; dead ones stay until somebody decides",
        outlived: Outlived::Where(
            "archived_at < coalesce($1, now()) - $2 and headers ->> 'state' in ('skipped', 'cancelled') order by archived_at",
        ),
    },
];

/// The outcome of one rule: how many rows went, and why it ended early if it did.
#[derive(Debug)]
pub struct Swept {
    pub table: String,
    pub gone: u64,
    pub error: Option<Error>,
}

/// Removes what has outlived its rule, rule by rule. `told` hears of every bite: the table, and how many rows went.
pub async fn enforce(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    queues: &[Queue],
    told: impl Fn(&str, u64),
) -> Vec<Swept> {
    let mut swept = Vec::new();
    for rule in RULES {
        let tables: Vec<String> = match rule.table {
            "pgmq.a_*" => queues.iter().map(|queue| format!("pgmq.a_{}", queue.name())).collect(),
            table => vec![table.to_owned()],
        };
        for table in tables {
            let mut gone = 0;
            let error = loop {
                match bite(conn, at, rule, &table).await {
                    Ok(0) => break None,
                    Ok(n) => {
                        gone += n;
                        told(&table, n);
                    }
                    Err(error) => break Some(error),
                }
            };
            swept.push(Swept { table, gone, error });
        }
    }
    swept
}

async fn bite(conn: &mut PgConnection, at: Option<DateTime<Utc>>, rule: &Rule, table: &str) -> Result<u64> {
    let keep = PgInterval { months: 0, days: rule.keep_days, microseconds: 0 };
    let sql = match rule.outlived {
        Outlived::Where(which) => bites::delete(table, which),
        Outlived::Statement(sql) => sql.to_owned(),
    };
    Ok(sqlx::query(AssertSqlSafe(sql)).bind(at).bind(keep).bind(BITE).execute(conn).await?.rows_affected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_about_its_own_table_and_asks_for_its_own_number() {
        for rule in RULES {
            let sql = match rule.outlived {
                Outlived::Where(which) => bites::delete(rule.table, which),
                Outlived::Statement(sql) => sql.to_owned(),
            };
            assert!(sql.contains(&format!("delete from {} where", rule.table)), "{rule:?}");
            assert!(["$1", "$2", "limit $3"].iter().all(|part| sql.contains(part)), "{rule:?}");
            assert!(!sql.contains("interval"), "{rule:?}");
        }
    }

    #[test]
    fn what_a_pass_met_goes_before_its_job() {
        let place = |table| RULES.iter().position(|rule| rule.table == table).expect("a rule");
        let (seen, jobs) = (place("tributary.sync_seen"), place("public.sync_jobs"));
        assert!(seen < jobs, "a job would wait for another hour");
        // The statement says that what a failed pass met goes after 90 times its own days.
        assert_eq!(RULES[jobs].keep_days, 90 * RULES[seen].keep_days);
    }
}
