//! The checks of `tributary doctor` on the database.

use serde::Serialize;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};

use crate::connect::ConnectTo;
use crate::{Result, migrate};

#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub is_ok: bool,
    /// The result, in words.
    pub found: String,
    /// The advice; empty if all is well.
    pub todo: String,
}

impl Check {
    pub fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, is_ok: true, found: found.into(), todo: String::new() }
    }

    pub fn bad(name: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { name, is_ok: false, found: found.into(), todo: todo.into() }
    }
}

/// Runs every check that needs a connection. A failed check does not stop the others.
pub async fn examine(to: &ConnectTo) -> Vec<Check> {
    let mut conn = match tokio::time::timeout(std::time::Duration::from_secs(10), to.options().connect()).await {
        Ok(Ok(conn)) => conn,
        // Poolers answer like this to the start-up parameters of a driver.
        Ok(Err(error)) if error.to_string().contains("unsupported startup parameter") => {
            return vec![Check::bad("session", format!("port {} is a pooler{POOLER}", to.port()), SESSION_TODO)];
        }
        Ok(Err(error)) => {
            let todo = "check that the server runs and that host, port, user and password are right";
            return vec![Check::bad("connection", format!("cannot connect to {}: {error}", to.in_words()), todo)];
        }
        Err(_) => {
            let todo = "check host, port and any firewall between";
            return vec![Check::bad("connection", format!("{} does not answer within 10 s", to.in_words()), todo)];
        }
    };
    let mut checks = vec![Check::ok("connection", format!("connected to {}", to.in_words()))];
    // The same role as our pool. Before the first migration the role does not exist, and the checks below say so.
    let _ = sqlx::raw_sql("set role service_role").execute(&mut conn).await;
    for check in [
        session(&mut conn, to).await,
        server(&mut conn).await,
        vector(&mut conn).await,
        pgmq(&mut conn).await,
        schema(&mut conn).await,
        durability(&mut conn).await,
    ] {
        checks.push(check.unwrap_or_else(|error| {
            Check::bad("database", format!("a check could not be made: {error}"), "see the server's log")
        }));
    }
    let _ = conn.close().await;
    checks
}

/// Detects a transaction pooler, which shares one server session between connections: two connections of ours then see the same session.
/// LISTEN, SET and prepared statements do not work there.
async fn session(conn: &mut PgConnection, to: &ConnectTo) -> Result<Check> {
    let pid = "select pg_backend_pid()";
    let mut other = to.options().connect().await?;
    let first: i32 = sqlx::query_scalar(pid).persistent(false).fetch_one(&mut *conn).await?;
    let second: i32 = sqlx::query_scalar(pid).persistent(false).fetch_one(&mut other).await?;
    other.close().await?;
    if first != second {
        return Ok(Check::ok("session", "a session connection: what is set stays set"));
    }
    Ok(Check::bad("session", format!("port {} is a transaction pooler{POOLER}", to.port()), SESSION_TODO))
}

const POOLER: &str = ": LISTEN and prepared statements do not work through it";
const SESSION_TODO: &str = "use a session connection in DATABASE_URL: usually port 5432, of the database itself or of the pooler in session mode";

async fn server(conn: &mut PgConnection) -> Result<Check> {
    let number: i32 = sqlx::query_scalar("select current_setting('server_version_num')::int").fetch_one(conn).await?;
    let version = format!("PostgreSQL {}.{}", number / 10_000, number % 10_000);
    if number >= 150_000 {
        return Ok(Check::ok("server", version));
    }
    Ok(Check::bad("server", version, "use PostgreSQL 15 or later"))
}

async fn vector(conn: &mut PgConnection) -> Result<Check> {
    let version: Option<String> = sqlx::query_scalar("select extversion from pg_extension where extname = 'vector'")
        .fetch_optional(&mut *conn)
        .await?;
    if let Some(version) = version {
        return Ok(Check::ok("pgvector", version));
    }
    let offered: bool = sqlx::query_scalar("select exists (select from pg_available_extensions where name = 'vector')")
        .fetch_one(conn)
        .await?;
    Ok(if offered {
        Check::bad("pgvector", "not installed in this database, but the server has it", "run `tributary migrate`")
    } else {
        Check::bad(
            "pgvector",
            "the server does not have it",
            "install pgvector on the server, or use the embedded one (unset DATABASE_URL)",
        )
    })
}

async fn pgmq(conn: &mut PgConnection) -> Result<Check> {
    let (version, has_meta): (Option<String>, bool) = sqlx::query_as(
        "select (select extversion from pg_extension where extname = 'pgmq'), to_regclass('pgmq.meta') is not null",
    )
    .fetch_one(&mut *conn)
    .await?;
    if !has_meta {
        return Ok(Check::bad("pgmq", "not installed", "run `tributary migrate`"));
    }
    if let Some(version) = version {
        let number = |part: usize| version.split('.').nth(part).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
        if (number(0), number(1)) < (1, 5) {
            return Ok(Check::bad(
                "pgmq",
                format!("extension {version} has no headers"),
                "run `alter extension pgmq update`; 1.5 or later is needed",
            ));
        }
    }
    let lacking: Vec<String> = sqlx::query_scalar(
        "select m.queue_name || '.' || wanted from pgmq.meta m, unnest(array['msg_id','read_ct','enqueued_at','vt','message','headers']) wanted
         where not exists (select from information_schema.columns c
             where c.table_schema = 'pgmq' and c.table_name = 'q_' || m.queue_name and c.column_name = wanted)",
    )
    .fetch_all(conn)
    .await?;
    if lacking.is_empty() {
        return Ok(Check::ok("pgmq", "installed; its queues have the columns we name"));
    }
    Ok(Check::bad("pgmq", format!("queues lack columns: {}", lacking.join(", ")), "run `alter extension pgmq update`"))
}

async fn schema(conn: &mut PgConnection) -> Result<Check> {
    let wanted = migrate::wanted_version();
    Ok(match migrate::version(conn).await? {
        None => Check::bad(
            "schema",
            "this database has not been set up",
            "run `tributary migrate` (or `tributary up`, which does it)",
        ),
        Some(version) if version == wanted && migrate::has_functions(conn).await? => {
            Check::ok("schema", format!("version {version}"))
        }
        Some(version) if version == wanted => Check::bad(
            "schema",
            format!("version {version}, with the functions of another binary"),
            "run `tributary migrate`",
        ),
        Some(version) if version < wanted => {
            Check::bad("schema", format!("version {version}; this binary wants {wanted}"), "run `tributary migrate`")
        }
        Some(version) => Check::bad(
            "schema",
            format!("version {version} is newer than this binary's {wanted}"),
            "use a newer tributary",
        ),
    })
}

async fn durability(conn: &mut PgConnection) -> Result<Check> {
    let (fsync, commit): (String, String) =
        sqlx::query_as("select current_setting('fsync'), current_setting('synchronous_commit')")
            .fetch_one(conn)
            .await?;
    if fsync == "on" && commit != "off" {
        return Ok(Check::ok("durability", format!("fsync on, synchronous_commit {commit}")));
    }
    Ok(Check::bad(
        "durability",
        format!("fsync {fsync}, synchronous_commit {commit}: what we acknowledged can be lost in a crash"),
        "set fsync = on and synchronous_commit = on",
    ))
}

/// A long-running transaction. Until it ends, the dead rows of every queue stay.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct LongTransaction {
    pub pid: i32,
    pub login: String,
    pub program: String,
    pub secs: f64,
}

pub async fn long_transactions(
    conn: &mut PgConnection,
    longer_than: std::time::Duration,
) -> Result<Vec<LongTransaction>> {
    Ok(sqlx::query_as(
        "select pid, coalesce(usename, '') as login, coalesce(nullif(application_name, ''), 'unnamed') as program,
             round(extract(epoch from now() - xact_start))::float8 as secs
         from pg_stat_activity
         where datname = current_database() and xact_start < now() - make_interval(secs => $1) and pid <> pg_backend_pid()
             and (backend_xid is not null or backend_xmin is not null)
         order by xact_start limit 5",
    )
    .bind(longer_than.as_secs_f64())
    .fetch_all(conn)
    .await?)
}
