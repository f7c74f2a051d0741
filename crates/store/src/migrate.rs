//! Migrations: forward only, under one lock, each in its own transaction, so that a crash leaves a whole migration or nothing of it. The functions
//! follow in one transaction of their own.
//!
//! A statement that waits for a lock gives up after a second, and the migration is tried again: work in flight goes first.

use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::connect::ConnectTo;
use crate::crash::{self, Point};
use crate::functions::{self, FUNCTIONS, Function};
use crate::{Error, Result, queue};

/// One step of the schema.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    pub name: &'static str,
    pub sql: &'static str,
    /// Hashes of earlier texts that count as this one: they also held functions, which are files of their own now ([`functions`]).
    pub earlier: &'static [&'static str],
}

macro_rules! files {
    ($($name:literal $(was $earlier:literal)*),* $(,)?) => {
        &[$(Migration {
            name: $name,
            sql: include_str!(concat!("../../../migrations/", $name, ".sql")),
            earlier: &[$($earlier),*],
        }),*]
    };
}

/// The migrations in order; a test compares this list with the folder. A migration is never edited once merged.
pub const MIGRATIONS: &[Migration] = files![
    "0001_callers",
    "0002_work",
    "0003_tracking",
    "0004_blobs",
    "0005_memory" was "69f951ecbee5cd22593030f93bdb95df20edc35fff0bf7e1864db175df0e8f80",
    "0006_intake" was "092e2d8ad2a4449af39a2eabc3253b026857d43e975aabc9c24a5b0bf7cd8c35",
    "0007_door" was "1466e3ac903ac55e57462d30ab93240328e2b43b1f83dd0dfa3bb12381037437",
    "0008_agents" was "6e5bfc74bd13fff50c568d9bb3757328fa9b100cad3cdd654de7629b8ed4cac0",
    "0009_recordings",
    "0010_hands" was "a63d1a117cfba81a63f1131c21845cd836e99e18ffcd2f967dc2d6272f9b58a6",
    "0011_sources" was "6b7bdb390c0d4b5525f6e7ac759f0d62201370ae6c2f5d65807f1bc00b957542",
    "0012_functions",
    "0013_again",
    "0014_channel_providers",
    "0015_lives",
    "0016_fences",
    "0017_forgetting",
    "0018_heartbeats",
    "0019_postings",
    "0020_moves",
    "0021_saved_searches",
    "0022_codes",
    "0023_languages",
    "0024_people",
    "0025_sign_in",
    "0026_channel_names",
    "0027_clients",
    "0028_dismissals",
    "0029_ignored_senders",
    "0030_corrections",
    "0031_mailboxes",
    "0032_letters",
    "0033_checks",
    "0034_assistants",
    "0035_mail_pages",
    "0036_forgotten_letters",
    "0037_columns_of_sources",
    "0038_files",
    "0039_failing_since",
    "0040_attached_files",
    "0041_ears",
    "0042_previews",
];

/// The schema this binary works with.
pub fn wanted_version() -> i32 {
    number(MIGRATIONS.len())
}

fn number(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// Any number: the same in every version, so that two binaries never migrate at once.
const LOCK: i64 = 0x7472_6962_7574_6172;
/// How often a process looks whether another one has finished its migration.
const LOCK_POLL: Duration = Duration::from_millis(100);

/// The names of what a migration changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    pub migrations: Vec<&'static str>,
    pub functions: Vec<&'static str>,
}

impl Applied {
    pub fn is_empty(&self) -> bool {
        self.migrations.is_empty() && self.functions.is_empty()
    }

    /// A summary in words: every migration by its name, the functions by their number.
    pub fn told(&self) -> String {
        let mut parts: Vec<String> = self.migrations.iter().map(|name| (*name).to_owned()).collect();
        if !self.functions.is_empty() {
            parts.push(format!("functions ({})", self.functions.len()));
        }
        parts.join(", ")
    }
}

/// Brings a database to this binary's schema and makes sure that every lane has its queue. `admin` may create roles and
/// extensions; `login` is the role the pool uses. Safe to repeat and to interrupt.
pub async fn run(admin: &ConnectTo, login: &str, lanes: &[&str]) -> Result<Applied> {
    run_lists(admin, login, lanes, MIGRATIONS, FUNCTIONS).await
}

/// The same with other lists, for tests of what was and of what may come.
pub async fn run_lists(
    admin: &ConnectTo,
    login: &str,
    lanes: &[&str],
    migrations: &[Migration],
    functions: &[Function],
) -> Result<Applied> {
    let mut conn = admin.connect("tributary migrate").await?;
    // A session that waits inside a statement keeps its snapshot, for which an index build of the one that has the lock would wait.
    while !sqlx::query_scalar::<_, bool>("select pg_try_advisory_lock($1)").bind(LOCK).fetch_one(&mut conn).await? {
        tokio::time::sleep(LOCK_POLL).await;
    }
    prepare(&mut conn, login).await?;
    install_pgmq(&mut conn, &admin.options()).await?;
    sqlx::raw_sql("set role tributary_owner; set lock_timeout = '1s'").execute(&mut conn).await?;
    let mut applied = Applied { migrations: apply(&mut conn, migrations).await?, functions: Vec::new() };
    // As the administrator: where pgmq is an extension its schema belongs to nobody else.
    sqlx::raw_sql("reset role").execute(&mut conn).await?;
    for lane in lanes {
        queue::create(&mut conn, lane).await?;
    }
    sqlx::raw_sql(include_str!("sql/grants.sql")).execute(&mut conn).await?;
    // A newer binary's schema comes with newer functions, which stay.
    if !functions.is_empty() && version(&mut conn).await? <= Some(number(migrations.len())) {
        sqlx::raw_sql("set role tributary_owner").execute(&mut conn).await?;
        applied.functions = functions::apply(&mut conn, functions).await?;
        sqlx::raw_sql("reset role").execute(&mut conn).await?;
    }
    if lanes.contains(&"ingestion_queue") {
        add_hooks(&mut conn).await?;
    }
    conn.close().await?; // and with the session the lock
    Ok(applied)
}

/// Our triggers on tables of pgmq's, with the function of each. They keep jobs in step with their messages, for every writer.
const HOOKS: [(&str, &str, &str); 2] = [
    ("job_archived", "pgmq.a_ingestion_queue", "tributary.job_archived"),
    ("job_sent", "pgmq.q_ingestion_queue", "tributary.job_sent"),
];

/// Puts our triggers on tables of pgmq's that do not have them. A trigger needs a lock that writers hold: on a hot queue it gives way, each in a
/// transaction of its own, and is tried again. One that is there costs no lock.
async fn add_hooks(conn: &mut PgConnection) -> Result<()> {
    for (name, table, function) in HOOKS {
        let is_there: bool = sqlx::query_scalar(
            "select exists (select from pg_trigger where tgrelid = $1::regclass and tgname = $2 and tgfoid = to_regproc($3) and tgenabled = 'O')
                 and (select bool_and(has_table_privilege('tributary_owner', $1, p)) from unnest(array['select', 'insert', 'update', 'delete']) p)",
        )
        .bind(table)
        .bind(name)
        .bind(function)
        .fetch_one(&mut *conn)
        .await?;
        let add = format!(
            "grant select, insert, update, delete on {table} to tributary_owner;
             create or replace trigger {name} after insert on {table} for each row execute function {function}()"
        );
        for attempt in 1.. {
            if is_there {
                break;
            }
            let done = sqlx::raw_sql(AssertSqlSafe(add.clone())).execute(&mut *conn).await;
            let done = done.map(|_| ()).map_err(Error::from);
            if !gave_way(&done, "queue hooks", attempt).await {
                done?;
                break;
            }
        }
    }
    Ok(())
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
    installed.map_err(|error| match error {
        pgmq::PgmqError::DatabaseError(error) => error.into(), // the server may just have gone away
        other => Error::Refused { what: format!("pgmq could not be installed: {other}") },
    })
}

async fn apply(conn: &mut PgConnection, migrations: &[Migration]) -> Result<Vec<&'static str>> {
    if version(conn).await?.is_none() {
        sqlx::raw_sql(include_str!("sql/migrations_table.sql")).execute(&mut *conn).await?;
    }
    let known: Vec<(i32, Vec<u8>)> =
        sqlx::query_as("select version, sha256 from tributary.migrations order by version")
            .fetch_all(&mut *conn)
            .await?;
    let mut applied = Vec::new();
    for (index, migration) in migrations.iter().enumerate() {
        let (version, name) = (number(index) + 1, migration.name);
        match known.iter().find(|(known, _)| *known == version) {
            Some((_, recorded)) if migration.is(recorded) => {}
            Some(_) => {
                return Err(Error::Refused {
                    what: format!(
                        "migration {name} was changed after it ran here; use the binary that ran it, or restore its file"
                    ),
                });
            }
            None => {
                apply_one(conn, version, migration).await?;
                applied.push(name);
            }
        }
    }
    Ok(applied)
}

impl Migration {
    fn sha256(&self) -> Vec<u8> {
        Sha256::digest(self.sql.as_bytes()).to_vec()
    }

    /// Whether this hash is of this migration, as it is or as it was.
    fn is(&self, sha256: &[u8]) -> bool {
        self.sha256() == sha256 || self.earlier.contains(&domain::hex::encode(sha256).as_str())
    }
}

async fn apply_one(conn: &mut PgConnection, version: i32, migration: &Migration) -> Result<()> {
    for attempt in 1.. {
        let tried = async {
            let mut tx = conn.begin().await?;
            sqlx::raw_sql(migration.sql).execute(&mut *tx).await?;
            sqlx::query("insert into tributary.migrations (version, name, sha256) values ($1, $2, $3)")
                .bind(version)
                .bind(migration.name)
                .bind(migration.sha256())
                .execute(&mut *tx)
                .await?;
            crash::at(Point::MigrateBeforeCommit)?;
            Ok(tx.commit().await?)
        };
        let done = tried.await;
        if !gave_way(&done, migration.name, attempt).await {
            return done;
        }
    }
    Ok(())
}

/// Whether the step gave way to the holder of a lock and shall be tried again; then it has waited a moment.
pub(crate) async fn gave_way<T>(done: &Result<T>, what: &str, attempt: u64) -> bool {
    let is_locked = done.as_ref().is_err_and(|error| error.code().as_deref() == Some("55P03"));
    if !is_locked || attempt >= 60 {
        return false;
    }
    tracing::info!(what, attempt, "migration: {what} waits for a lock, will try again");
    tokio::time::sleep(Duration::from_millis(200 + 100 * attempt.min(8))).await;
    true
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

/// Whether a database of at least this binary's schema also has what a migration sets up last: the queues of these lanes, rights on what is not
/// ours, and the functions.
pub async fn is_complete(conn: &mut PgConnection, lanes: &[&str]) -> Result<bool> {
    let has_queues: bool =
        sqlx::query_scalar(include_str!("sql/migrated.sql")).bind(lanes).fetch_one(&mut *conn).await?;
    Ok(has_queues && has_functions(conn).await?)
}

/// Whether a database of at least this binary's schema has this binary's functions, or those of a newer schema.
pub async fn has_functions(conn: &mut PgConnection) -> Result<bool> {
    Ok(version(conn).await? > Some(wanted_version()) || functions::are_applied(conn).await?)
}

/// Creates a database; used for the embedded server's own and for tests' clones.
pub async fn create_database(admin: &ConnectTo, name: &str, template: Option<&str>) -> Result<()> {
    let mut conn = admin.connect("tributary migrate").await?;
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
        let listed: Vec<&str> = MIGRATIONS.iter().map(|migration| migration.name).collect();
        assert_eq!(files, listed);
        // A migration's version is its place in the list: one that is put between others would change theirs.
        for (nth, name) in listed.iter().enumerate() {
            assert!(name.starts_with(&format!("{:04}_", nth + 1)), "{name} is number {} of the list", nth + 1);
        }
    }
}
