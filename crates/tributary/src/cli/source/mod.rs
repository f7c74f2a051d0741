//! `tributary source`: accounts at providers that are read into memory.

mod connect;
mod find;
mod show;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use connectors::pull::{ALL, Provider};
use domain::shown::{plural, shown};
use domain::{Caller, JobKind, SourceId, SourceStatus, TenantId, Transport};
use engine::pull::decisions::{self, Again};
use engine::pull::jobs::{self, Asked};
use engine::pull::words::{cadence, in_a_row};
use engine::{Config, Env};
use serde_json::{Value, json};
use store::forgotten;

use self::connect::{FromStdin, dash};
pub(super) use self::find::find;
use self::find::{done, found, gone, hinted};
use super::{caller, env, progress};

#[derive(clap::Args)]
pub struct Args {
    /// Tenant by name or id; yours when left out.
    #[arg(long, global = true)]
    tenant: Option<String>,
    /// As JSON, for scripts.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Connect an account: prints where to do that in a browser, or takes a key.
    Connect {
        #[arg(help = one_of(), value_parser = provider)]
        provider: Provider,
        /// Read a key from stdin, such as the token of a private app. Never on the command line, where others see it.
        #[arg(long, value_name = "-", value_parser = dash)]
        key: Option<FromStdin>,
        /// Sample data that ships with this program: no account anywhere.
        #[arg(long, conflicts_with_all = ["key", "mcp"])]
        fixtures: bool,
        #[arg(long, help = through_mcp())]
        mcp: bool,
    },
    /// List the sources and how they are.
    List,
    /// Show a source: what it holds, its latest jobs, what could not be read, what happened.
    Show {
        /// Its id, the beginning of it, its name, or its provider where there is only one.
        source: String,
    },
    /// Read what changed since the last time.
    Sync {
        source: String,
        /// Read everything, and delete here what the provider no longer has.
        #[arg(long)]
        full: bool,
        /// Show it until it is over.
        #[arg(long)]
        wait: bool,
    },
    /// Say how often it is synced by itself.
    Every {
        source: String,
        /// Such as 15m, 6h or 1d; of a day or more: at night.
        #[arg(value_parser = cadence::parse)]
        every: Duration,
    },
    /// Read nothing more until resumed; what runs stops after its page.
    Pause { source: String },
    /// Go on where it stopped.
    Resume { source: String },
    /// Read records again that could not be read, by one job.
    Retry {
        source: String,
        /// One of those that `show` lists, skipped or not; all that nobody skipped when left out.
        record: Option<String>,
    },
    /// Leave a record out that could not be read.
    Skip {
        source: String,
        /// One of those that `show` lists.
        record: String,
    },
    /// Give a source new tokens: prints where to do that in a browser, or takes a key.
    Reconnect {
        source: String,
        /// Read a key from stdin.
        #[arg(long, value_name = "-", value_parser = dash)]
        key: Option<FromStdin>,
    },
    /// Disconnect a source and remove everything that came from it. Shows what will go, and asks.
    Forget {
        source: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// Only disconnect it: what it brought stays.
        #[arg(long)]
        keep: bool,
    },
}

/// The providers that can be named.
fn one_of() -> String {
    let names: Vec<&str> = ALL.iter().map(|provider| provider.name).collect();
    format!("Its provider: {}", in_a_row(&names, "or"))
}

fn through_mcp() -> String {
    let settings: Vec<&str> = ALL.iter().filter_map(|provider| Some(provider.mcp.as_ref()?.url.env)).collect();
    format!(
        "Read it through the MCP server that {} names. Every sync reads everything then, since MCP knows no changes",
        in_a_row(&settings, "or")
    )
}

fn provider(name: &str) -> Result<Provider, String> {
    ALL.iter().copied().find(|provider| provider.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|provider| provider.name).collect();
        format!("{name:?} is none of {}", names.join(", "))
    })
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.tenant.as_deref()).await?;
    let (tenant_id, is_json) = (caller.tenant_id, args.json);
    match args.command {
        Command::Connect { provider, key, fixtures, mcp } => {
            let transport = match (fixtures, mcp) {
                (true, _) => Transport::Fixtures,
                (false, true) => Transport::Mcp,
                (false, false) => Transport::Rest,
            };
            connect::connect(&env, tenant_id, provider, key, transport, is_json).await
        }
        Command::List => show::list(&env, tenant_id, is_json).await,
        Command::Show { source } => show::show(&env, tenant_id, &source, is_json).await,
        Command::Sync { source, full, wait } => sync(&env, tenant_id, &source, full, wait, is_json).await,
        Command::Every { source, every } => {
            let id = find(&env, tenant_id, &source).await?;
            done(decisions::set_sync_every(&env, tenant_id, id, every).await, id)?;
            let every = cadence::spelled(every);
            say(json!({ "id": id, "every": every }), &format!("synced every {every} from now on"), is_json)
        }
        Command::Pause { source } => {
            let id = find(&env, tenant_id, &source).await?;
            done(jobs::pause_source(&env, tenant_id, id).await, id)?;
            let words = format!("paused; `tributary source resume {id}` goes on where it stopped");
            say(json!({ "id": id, "status": "paused" }), &words, is_json)
        }
        Command::Resume { source } => {
            let id = find(&env, tenant_id, &source).await?;
            done(jobs::resume_source(&env, tenant_id, id).await, id)?;
            say(json!({ "id": id, "status": "active" }), "resumed", is_json)
        }
        Command::Retry { source, record } => {
            let id = find(&env, tenant_id, &source).await?;
            retry(&env, tenant_id, id, record.as_deref(), is_json).await
        }
        Command::Skip { source, record } => {
            let id = find(&env, tenant_id, &source).await?;
            if !decisions::skip(&env, tenant_id, id, &record).await? {
                let what = "is none that could not be read, or is left out already";
                bail!("{} {what}\n\nhint: `tributary source show {id}` lists them", shown(&record));
            }
            let words = format!("it is left out; `tributary source retry {id} {}` tries it again", shown(&record));
            say(json!({ "id": id, "record": record, "is_skipped": true }), &words, is_json)
        }
        Command::Reconnect { source, key } => {
            let source = found(&env, tenant_id, &source).await?;
            connect::reconnect(&env, tenant_id, &source, key, is_json).await
        }
        Command::Forget { source, yes, keep } => forget(&env, &caller, &source, yes, keep, is_json).await,
    }
}

async fn sync(
    env: &Env,
    tenant_id: TenantId,
    text: &str,
    full: bool,
    wait: bool,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let id = find(env, tenant_id, text).await?;
    let asked = jobs::sync(env, tenant_id, id, full.then_some(JobKind::Full), "person").await;
    let asked = asked.map_err(|error| hinted(error, id))?.with_context(|| gone(id))?;
    let (job_id, said) = match asked {
        Asked::Started(job_id) => (job_id, "asked for"),
        Asked::Running(job_id) => (job_id, "under way already; it will run again after this one"),
    };
    if wait {
        eprintln!("job {job_id}: {said}");
        return progress::watch(env, tenant_id, job_id, is_json).await;
    }
    if is_json {
        let is_new = matches!(asked, Asked::Started(_));
        println!("{}", serde_json::to_string_pretty(&json!({ "job_id": job_id, "is_new": is_new }))?);
    } else {
        println!("job {job_id}");
        eprintln!("{said}; `tributary job show {job_id} --watch` shows how far it is");
    }
    Ok(ExitCode::SUCCESS)
}

async fn retry(
    env: &Env,
    tenant_id: TenantId,
    id: SourceId,
    record: Option<&str>,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let again = match record {
        Some(record) => decisions::retry(env, tenant_id, id, record, "person").await,
        None => decisions::retry_all(env, tenant_id, id, "person").await,
    };
    let hint = format!("hint: `tributary source show {id}` lists what could not be read");
    match again.map_err(|error| hinted(error, id))? {
        Again::Started(job_id, n) => {
            let words =
                format!("job {job_id} reads {n} again; `tributary job show {job_id} --watch` shows how far it is");
            say(json!({ "job_id": job_id, "records": n }), &words, is_json)
        }
        Again::Running(job_id) => {
            let words = format!(
                "a sync is under way; the records are read again after it\nhint: `tributary job show {job_id} --watch` shows when it has ended"
            );
            say(json!({ "job_id": job_id, "is_new": false }), &words, is_json)
        }
        Again::Nameless => {
            bail!("it has no id to ask for it by\n\nhint: `tributary source sync {id} --full` tries it again")
        }
        Again::Unknown => bail!("there is nothing of that to read again\n\n{hint}"),
    }
}

async fn forget(
    env: &Env,
    caller: &Caller,
    text: &str,
    yes: bool,
    keep: bool,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let tenant_id = caller.tenant_id;
    let source = found(env, tenant_id, text).await?;
    let id = SourceId(source.id);
    let mut conn = env.db.acquire().await?;
    let counted = forgotten::count(&mut conn, tenant_id, id).await?;
    drop(conn);
    let name = shown(&source.name);
    let all = format!(
        "{} in {}, {} and {}",
        plural(counted.documents, "document", "documents"),
        plural(counted.chunks, "chunk", "chunks"),
        plural(counted.clients, "client", "clients"),
        plural(counted.jobs, "job", "jobs")
    );
    if keep {
        eprintln!(
            "{name} ({}) will be disconnected: its tokens go, and nothing more is read.\nKept: {all}",
            show::who(env, &source)
        );
    } else {
        eprintln!(
            "{name} ({}) will be forgotten, and this cannot be undone.\nGoes with it: {all}",
            show::who(env, &source)
        );
    }
    if !yes && !is_agreed(if keep { "Disconnect it?" } else { "Forget all of it?" })? {
        eprintln!("nothing was done");
        return Ok(ExitCode::FAILURE);
    }
    if keep {
        if source.status != SourceStatus::Disconnected {
            done(engine::pull::connect::disconnect(env, tenant_id, id).await, id)?;
        }
        let words = format!("disconnected; `tributary source reconnect {id}` connects it again");
        return say(json!({ "id": id, "status": "disconnected" }), &words, is_json);
    }
    let going = engine::pull::connect::forget(env, tenant_id, id, &caller.key_name).await?.with_context(|| gone(id))?;
    say(serde_json::to_value(going)?, "disconnected; a worker removes what came from it, step by step", is_json)
}

/// What was done, as data or in words.
fn say(data: Value, words: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    if is_json {
        println!("{}", serde_json::to_string_pretty(&data)?);
    } else {
        println!("{words}");
    }
    Ok(ExitCode::SUCCESS)
}

fn is_agreed(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("nobody is there to ask\n\nhint: `--yes` goes on without asking");
    }
    eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
