//! SQL functions, views and triggers: one file each, replaced in place after the migrations when its text has changed.
//!
//! All changed files are applied in one transaction, so that a running process sees the old functions or the new ones, never a mixture. The table
//! `tributary.functions` keeps every text that was applied: a process may start when its own texts are among them, also when newer ones are in force.

use chrono::TimeDelta;
use domain::activity;
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::crash::{self, Point};
use crate::{Result, claims, clients, migrate};

/// A file's name without its extension, and its text.
pub type Function = (&'static str, &'static str);

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../functions/", $name, ".sql")))),*]
    };
}

/// The functions in the order in which they are applied: a function in SQL comes after those it calls. A test compares this list with the folder.
pub const FUNCTIONS: &[Function] = files![
    "public.normalize_phone",
    "tributary.address_key",
    "tributary.add_contact_key",
    "tributary.keep_contact_keys",
    "tributary.match_contact",
    "tributary.ensure_contact",
    "tributary.party",
    "public.auto_link_contact",
    "tributary.is_result",
    "tributary.activity_changes",
    "tributary.activity_retried",
    "tributary.send_remember_activity",
    "tributary.file_unused",
    "tributary.agent",
    "tributary.sees_all_activities",
    "tributary.is_open_to_others",
    "tributary.has_activity",
    "tributary.lock_raw",
    "tributary.overdue_activities",
    "tributary.claim_activities",
    "public.claim_next_pending_activity",
    "public.claim_stale_activity",
    "tributary.recover_activities",
    "public.unlock_stale_locks",
    "public.reset_stale_locks",
    "tributary.retry_activities",
    "tributary.retry_failed",
    "tributary.node_beats",
    "tributary.node_holds_on",
    "memory.ensure_model",
    "memory.hold_pointer",
    "memory.free_pointer",
    "memory.drop_unused_models",
    "tributary.client_name_key",
    "tributary.client_domain",
    "tributary.client_keys",
    "tributary.client_of_contact",
    "tributary.client_contacts",
    "tributary.client_documents",
    "tributary.client_gone",
    "tributary.client_provenance",
    "tributary.clients_found",
    "memory.filter_condition",
    "memory.filter_documents",
    "memory.words",
    "memory.number_chunk",
    "memory.keep_fresh",
    "memory.terms",
    "memory.keyword_postings",
    "memory.posting_lists",
    "memory.nearest_chunks",
    "memory.keep_fresh_vectors",
    "memory.vector_side",
    "memory.read_codes",
    "memory.live_chunks",
    "memory.complete_candidates",
    "memory.keyword_scores",
    "memory.keyword_candidates",
    "memory.vector_candidates",
    "memory.search",
    "tributary.reserve",
    "tributary.take_turn",
    "tributary.job_archived",
    "tributary.job_sent",
    "tributary.run_again",
    "tributary.sync_ended",
    "tributary.check_queue",
    "public.ingestion_enqueue",
    "public.ingestion_read",
    "public.ingestion_delete",
    "public.ingestion_archive",
    "public.ingestion_jobs",
    "public.historical_sync_jobs",
    "public.gmail_threads",
];

/// Applies the files whose text is not the one in force, and returns their names. The session's role owns the functions.
pub(crate) async fn apply(conn: &mut PgConnection, functions: &[Function]) -> Result<Vec<&'static str>> {
    for attempt in 1.. {
        let done = apply_once(conn, functions).await;
        if !migrate::gave_way(&done, "functions", attempt).await {
            return done;
        }
    }
    Ok(Vec::new())
}

async fn apply_once(conn: &mut PgConnection, functions: &[Function]) -> Result<Vec<&'static str>> {
    let mut tx = conn.begin().await?;
    // Replacing a trigger waits for the table's writers. We give way after half a second, before PostgreSQL looks for deadlocks (1 s), so that
    // it is never a writer that is ended. Signatures name pgvector's types, which may be in any schema.
    sqlx::raw_sql(
        "set local lock_timeout = '500ms';
         select set_config('search_path', 'pg_catalog, ' || quote_ident(n.nspname), true)
         from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'",
    )
    .execute(&mut *tx)
    .await?;
    let in_force: Vec<(String, Vec<u8>)> =
        sqlx::query_as("select name, sha256 from tributary.functions where is_current").fetch_all(&mut *tx).await?;
    let mut applied = Vec::new();
    for (name, sql) in functions {
        let sql = with_rules(sql);
        let sha256 = sha256(&sql);
        if in_force.iter().any(|(known, text)| known == name && *text == sha256) {
            continue;
        }
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *tx).await?;
        sqlx::query("update tributary.functions set is_current = false where name = $1 and is_current")
            .bind(name)
            .execute(&mut *tx)
            .await?;
        sqlx::query(
            "insert into tributary.functions (name, sha256) values ($1, $2)
             on conflict (name, sha256) do update set is_current = true, applied_at = excluded.applied_at",
        )
        .bind(name)
        .bind(sha256)
        .execute(&mut *tx)
        .await?;
        applied.push(*name);
    }
    crash::at(Point::MigrateFunctions)?;
    tx.commit().await?;
    if !applied.is_empty() {
        tracing::debug!(n = applied.len(), "functions were replaced: {}", applied.join(", "));
    }
    Ok(applied)
}

/// Whether every function of this binary has been applied here, even if a newer one is in force by now.
pub async fn are_applied(conn: &mut PgConnection) -> Result<bool> {
    let (names, texts): (Vec<&str>, Vec<Vec<u8>>) =
        FUNCTIONS.iter().map(|(name, sql)| (*name, sha256(&with_rules(sql)))).unzip();
    Ok(sqlx::query_scalar(
        "select not exists (
             select name, sha256 from unnest($1::text[], $2::bytea[]) ours (name, sha256)
             except select name, sha256 from tributary.functions)",
    )
    .bind(names)
    .bind(texts)
    .fetch_one(conn)
    .await?)
}

/// Puts the rules of `domain::activity`, and what functions share with statements, where the text names them, `{{LIKE_THIS}}`, so that each number is stated once. A rule that changes changes
/// the hash of the functions that have it.
fn with_rules(sql: &str) -> String {
    let span = |time: TimeDelta| format!("interval '{} seconds'", time.num_seconds());
    let word = |text: &str| format!("'{text}'");
    let rules = [
        ("RETRY_AFTER", span(activity::RETRY_AFTER)),
        ("RETRY_WITHIN", span(activity::RETRY_WITHIN)),
        ("MAX_RETRIES", activity::MAX_RETRIES.to_string()),
        ("OURS", format!("array[{}]", activity::OURS.map(word).join(", "))),
        ("PLAIN_ERROR", word(activity::PLAIN_ERROR)),
        ("SKIPPED", word(activity::SKIPPED)),
        ("ABANDONED", word(activity::ABANDONED)),
        ("UNLOCK_AFTER", span(activity::UNLOCK_AFTER)),
        ("RESET_AFTER", span(activity::RESET_AFTER)),
        ("MAX_RECOVERIES", activity::MAX_RECOVERIES.to_string()),
        ("HEARD_WITHIN", span(activity::HEARD_WITHIN)),
        ("STALE_AFTER", span(activity::STALE_AFTER)),
        ("BUILT_IN", word(claims::BUILT_IN)),
        ("CLIENTS_LOCK", clients::matching::SEED.to_string()),
    ];
    rules.iter().fold(sql.to_owned(), |sql, (name, value)| sql.replace(&format!("{{{{{name}}}}}"), value))
}

fn sha256(sql: &str) -> Vec<u8> {
    Sha256::digest(sql.as_bytes()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_the_folder_and_each_file_says_what_it_promises() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../functions");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .expect("functions folder")
            .map(|entry| entry.expect("entry").path().file_stem().expect("name").to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut listed: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        listed.sort_unstable();
        assert_eq!(files, listed);
        for (name, sql) in FUNCTIONS {
            assert!(sql.starts_with(&format!("-- {name}.sql: ")), "{name} does not begin with what it promises");
        }
    }

    #[test]
    fn rules_about_activities_come_from_the_domain() {
        for (name, sql) in FUNCTIONS {
            assert!(!with_rules(sql).contains("{{"), "{name} names a rule that there is not");
            assert!(
                !(sql.contains("public.activities") && sql.contains("interval '")),
                "{name} states a rule of its own"
            );
        }
        assert_eq!(with_rules("now() - {{RETRY_AFTER}}"), "now() - interval '3600 seconds'");
        assert_eq!(with_rules("{{OURS}}"), "array['Skipped', 'Abandoned']");
    }
}
