//! `tributary doctor`: checks everything and says what to do about each finding. The exit code is 1 if something is wrong.

use std::process::ExitCode;

use domain::Caller;
use domain::shown::shown;
use engine::config::TranscribeKind;
use engine::enrich::Hearing;
use engine::memory::moves::{self, Status};
use engine::{Config, Env, database, health};
use store::alerts::Finding;
use store::doctor::{Check, examine};

#[derive(clap::Args)]
pub struct Args {
    /// Print JSON, for scripts.
    #[arg(long)]
    json: bool,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let mut checks = vec![data_folder(&config)];
    match database::find(&config).await {
        Ok(found) => {
            checks.extend(examine(&found.login).await);
            if checks.iter().all(|check| check.is_ok) {
                checks.extend(master_key(&found, &config));
                let env = found.env(&config)?;
                checks.push(embedder(&env).await);
                checks.extend(hearing(&env).await);
                checks.extend(moving(&env).await);
                checks.extend(running(&env).await);
            }
        }
        Err(error) if config.database_url.is_none() => {
            checks.push(Check::bad(
                "server",
                format!("{error}").lines().next().unwrap_or_default(),
                "run `tributary up`",
            ));
        }
        Err(error) => checks.push(Check::bad(
            "DATABASE_URL",
            error.to_string(),
            "write it as postgres://user:password@host:5432/database",
        )),
    }
    if config.database_url.is_some() {
        checks.push(Check::ok(
            "backup",
            "the database is yours to back up; `tributary backup DIR --with-master-key` writes the rest: files, and the key without which no stored token can be read",
        ));
    }
    let is_well = checks.iter().all(|check| check.is_ok);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&checks)?);
    } else {
        for check in &checks {
            println!("{} {:12} {}", if check.is_ok { "ok     " } else { "PROBLEM" }, check.name, check.found);
            if !check.is_ok {
                println!("        {:12} what to do: {}", "", check.todo);
            }
        }
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn data_folder(config: &Config) -> Check {
    let dir = &config.data_dir;
    if !dir.exists() {
        return Check::ok("data folder", format!("{} is made by the first `up`", dir.display()));
    }
    match std::fs::File::options().append(true).create(true).open(dir.join("up.lock")) {
        Ok(_) => Check::ok("data folder", dir.display().to_string()),
        Err(error) => Check::bad(
            "data folder",
            format!("{}: {error}", dir.display()),
            "run as the user who made it, or set DATA_DIR",
        ),
    }
}

fn master_key(found: &database::Database, config: &Config) -> Option<Check> {
    Some(match found.env(config) {
        Ok(env) => Check::ok(
            "master key",
            format!("key {}; without it no stored token can be read, so back it up", env.vault.key_id()),
        ),
        Err(error) => {
            Check::bad("master key", error.to_string(), "restore master.key from your backup, or set MASTER_KEY")
        }
    })
}

/// Whether the model on this machine makes vectors. A service is not asked: that may cost money.
async fn embedder(env: &Env) -> Check {
    let embedder = env.embedders.configured();
    let name = &embedder.model().name;
    if embedder.is_service() {
        return Check::ok("embedder", format!("the model {name}, by a service"));
    }
    match embedder.embed_query("doctor").await {
        Ok(_) => Check::ok("embedder", format!("the model {name}, on this machine")),
        Err(fault) => Check::bad(
            "embedder",
            format!("the model {name} makes no vectors, so texts are found by keyword only: {}", fault.in_words()),
            "start the program with ./tributary, which fetches the model, or set EMBEDDER",
        ),
    }
}

/// The transcriber of calls. None: the database could not be asked how fast, which another check says.
async fn hearing(env: &Env) -> Option<Check> {
    let told = Hearing::told(env).await.ok()?;
    let is_missing = env.config.transcribe != Some(TranscribeKind::Off) && !Hearing::of(&env.config).can_hear();
    Some(match is_missing {
        false => Check::ok("calls", told),
        true => Check::bad(
            "calls",
            told,
            "start the program with ./tributary, set TRANSCRIBE_BASE_URL, or set TRANSCRIBE=off",
        ),
    })
}

fn found(finding: Finding) -> Check {
    // Which source or job it is, is in no sentence.
    let what = match finding.kind {
        "source_reconnect" | "source_error" | "sync_failed" => format!("{} ({})", finding.what, finding.subject),
        _ => finding.what,
    };
    Check::bad("work", what, finding.todo)
}

/// The memories that move to another model: how far each is, and what it costs.
async fn moving(env: &Env) -> Vec<Check> {
    let look = async {
        let tenant_id = env.db.session(async |conn| store::tenants::ensure_operator(conn).await).await?;
        moves::status(env, &Caller::local("doctor", tenant_id, true)).await
    };
    let Ok(all) = look.await else { return Vec::new() }; // the next check says what is wrong with the database
    let said = |status: &Status| {
        let words = moves::in_words(status.moving.as_ref()?);
        Some(Check::ok("memory", format!("the memory of tenant {} {words}", shown(&status.placed.tenant))))
    };
    all.iter().filter_map(said).collect()
}

/// The findings that Home shows to the operator.
async fn running(env: &Env) -> Vec<Check> {
    let look = async {
        let mut conn = env.db.acquire().await?;
        let tenant_id = store::tenants::ensure_operator(&mut conn).await?;
        drop(conn);
        health::overview(env, &Caller::local("doctor", tenant_id, true)).await
    };
    match look.await {
        Ok(overview) if overview.findings.is_empty() => vec![Check::ok("work", "workers live, nothing is given up")],
        Ok(overview) => overview.findings.into_iter().map(found).collect(),
        Err(error) => vec![Check::bad("work", format!("{:#}", anyhow::Error::from(error)), "see the server's log")],
    }
}
