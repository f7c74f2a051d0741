//! Migrations: forward only, under one lock, each in its own transaction, so that a crash leaves the whole of one or nothing.
//!
//! A statement that waits for a lock gives up after a second and the migration is tried again: work in flight goes first.

use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, PgConnection};

use crate::crash::{self, Point};
use crate::db::ConnectTo;
use crate::{Error, Result, queue};

/// In order; a test holds this list against the folder. Never edited once merged.
pub const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_callers", include_str!("../../../migrations/0001_callers.sql")),
    ("0002_work", include_str!("../../../migrations/0002_work.sql")),
    ("0003_tracking", include_str!("../../../migrations/0003_tracking.sql")),
    ("0004_blobs", include_str!("../../../migrations/0004_blobs.sql")),
    ("0005_memory", include_str!("../../../migrations/0005_memory.sql")),
    ("0006_intake", include_str!("../../../migrations/0006_intake.sql")),
    ("0007_door", include_str!("../../../migrations/0007_door.sql")),
    ("0008_agents", include_str!("../../../migrations/0008_agents.sql")),
    ("0009_recordings", include_str!("../../../migrations/0009_recordings.sql")),
    ("0010_hands", include_str!("../../../migrations/0010_hands.sql")),
    ("0011_sources", include_str!("../../../migrations/0011_sources.sql")),
];

/// The schema this binary works with.
pub fn wanted_version() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

/// Any number: the same in every version, so that two binaries never migrate at once.
const LOCK: i64 = 0x7472_6962_7574_6172;

/// Brings a database to this binary's schema and makes sure that every lane has its queue. `admin` may create roles and
/// extensions; `login` is the role the pool uses. Safe to repeat and to interrupt.
pub async fn run(admin: &ConnectTo, login: &str, lanes: &[&str]) -> Result<Vec<&'static str>> {
    run_list(admin, login, lanes, MIGRATIONS).await
}

/// The same with another list, for tests of what a coming migration meets.
pub async fn run_list(
    admin: &ConnectTo,
    login: &str,
    lanes: &[&str],
    migrations: &[(&'static str, &'static str)],
) -> Result<Vec<&'static str>> {
    let mut conn = admin.0.clone().application_name("tributary migrate").connect().await?;
    sqlx::query("select pg_advisory_lock($1)").bind(LOCK).execute(&mut conn).await?;
    prepare(&mut conn, login).await?;
    install_pgmq(&mut conn, &admin.0).await?;
    sqlx::raw_sql("set role tributary_owner; set lock_timeout = '1s'").execute(&mut conn).await?;
    let applied = apply(&mut conn, migrations).await?;
    // As the administrator: where pgmq is an extension its schema is nobody else's.
    sqlx::raw_sql("reset role").execute(&mut conn).await?;
    for lane in lanes {
        queue::create(&mut conn, lane).await?;
    }
    sqlx::raw_sql(include_str!("sql/grants.sql")).execute(&mut conn).await?;
    if lanes.contains(&"ingestion_queue") {
        sqlx::raw_sql(include_str!("sql/queue_hooks.sql")).execute(&mut conn).await?;
    }
    conn.close().await?; // and with the session the lock
    Ok(applied)
}

/// Roles are cluster-wide: two databases being prepared at once can meet in the catalog and one is told to try again.
async fn prepare(conn: &mut PgConnection, login: &str) -> Result<()> {
    sqlx::query("select set_config('tributary.login', $1, false)").bind(login).execute(&mut *conn).await?;
    let mut tries = 0;
    loop {
        match sqlx::raw_sql(include_str!("sql/prepare.sql")).execute(&mut *conn).await {
            Ok(_) => return Ok(()),
            // "tuple concurrently updated" is an internal error to PostgreSQL.
            Err(sqlx::Error::Database(reply)) if reply.code().as_deref() == Some("XX000") && tries < 20 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(50 * tries)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// An existing extension is used; else it is created where the server offers it; else the crate's SQL is installed.
async fn install_pgmq(conn: &mut PgConnection, admin: &PgConnectOptions) -> Result<()> {
    let (installed, offered): (bool, bool) = sqlx::query_as(
        "select exists (select from pg_extension where extname = 'pgmq'),
                exists (select from pg_available_extensions where name = 'pgmq')",
    )
    .fetch_one(&mut *conn)
    .await?;
    if installed {
        return Ok(());
    }
    if offered && sqlx::raw_sql("create extension pgmq").execute(&mut *conn).await.is_ok() {
        return Ok(());
    }
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .after_connect(|conn, _| {
            Box::pin(async move { sqlx::raw_sql("set role tributary_owner").execute(&mut *conn).await.map(|_| ()) })
        })
        .connect_with(admin.clone())
        .await?;
    let installed = pgmq::install::install_sql_from_embedded(&pool).await;
    pool.close().await;
    installed.map_err(|error| Error::Refused { what: format!("pgmq could not be installed: {error}") })
}

async fn apply(conn: &mut PgConnection, migrations: &[(&'static str, &'static str)]) -> Result<Vec<&'static str>> {
    if version(conn).await?.is_none() {
        sqlx::raw_sql(include_str!("sql/migrations_table.sql")).execute(&mut *conn).await?;
    }
    let known: Vec<(i32, Vec<u8>)> =
        sqlx::query_as("select version, sha256 from tributary.migrations order by version")
            .fetch_all(&mut *conn)
            .await?;
    let mut applied = Vec::new();
    for (index, (name, sql)) in migrations.iter().enumerate() {
        let version = i32::try_from(index).unwrap_or(i32::MAX) + 1;
        let sha256 = Sha256::digest(sql.as_bytes()).to_vec();
        match known.iter().find(|(known, _)| *known == version) {
            Some((_, recorded)) if *recorded == sha256 => {}
            Some(_) => {
                return Err(Error::Refused {
                    what: format!(
                        "migration {name} was changed after it ran here; use the binary that ran it, or restore its file"
                    ),
                });
            }
            None => {
                apply_one(conn, version, name, sql, &sha256).await?;
                applied.push(*name);
            }
        }
    }
    Ok(applied)
}

async fn apply_one(conn: &mut PgConnection, version: i32, name: &str, sql: &'static str, sha256: &[u8]) -> Result<()> {
    for attempt in 1.. {
        let tried = async {
            let mut tx = conn.begin().await?;
            sqlx::raw_sql(sql).execute(&mut *tx).await?;
            sqlx::query("insert into tributary.migrations (version, name, sha256) values ($1, $2, $3)")
                .bind(version)
                .bind(name)
                .bind(sha256)
                .execute(&mut *tx)
                .await?;
            crash::at(Point::MigrateBeforeCommit)?;
            Ok(tx.commit().await?)
        };
        match tried.await {
            Err(error @ Error::Database(_)) if error.code().as_deref() == Some("55P03") && attempt < 60 => {
                tracing::info!(name, attempt, "migration {name} waits for a lock, will try again");
                tokio::time::sleep(Duration::from_millis(200 + 100 * attempt.min(8))).await;
            }
            done => return done,
        }
    }
    Ok(())
}

/// The schema the database has, or none when it was never migrated.
pub async fn version(conn: &mut PgConnection) -> Result<Option<i32>> {
    let exists: bool =
        sqlx::query_scalar("select to_regclass('tributary.migrations') is not null").fetch_one(&mut *conn).await?;
    if !exists {
        return Ok(None);
    }
    Ok(sqlx::query_scalar("select max(version) from tributary.migrations").fetch_one(conn).await?)
}

/// Whether the session's role may use everything that a migration sets up last: the queues of these lanes, and what is not ours.
pub async fn is_complete(conn: &mut PgConnection, lanes: &[&str]) -> Result<bool> {
    Ok(sqlx::query_scalar(include_str!("sql/migrated.sql")).bind(lanes).fetch_one(conn).await?)
}

/// Creates a database; used for the embedded server's own and for tests' clones.
pub async fn create_database(admin: &ConnectTo, name: &str, template: Option<&str>) -> Result<()> {
    let mut conn = admin.0.connect().await?;
    let exists: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
        .bind(name)
        .fetch_one(&mut conn)
        .await?;
    if !exists {
        let (name, template) = (quote(name), quote(template.unwrap_or("template1")));
        sqlx::raw_sql(AssertSqlSafe(format!("create database {name} template {template}"))).execute(&mut conn).await?;
    }
    Ok(conn.close().await?)
}

pub(crate) fn quote(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_the_folder() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .expect("migrations folder")
            .map(|entry| entry.expect("entry").path().file_stem().expect("name").to_string_lossy().into_owned())
            .collect();
        files.sort();
        let listed: Vec<&str> = MIGRATIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(files, listed);
    }
}
