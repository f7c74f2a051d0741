//! `tributary source`: accounts at providers that are read into memory.

mod check;
mod connect;
mod find;
mod mail;
mod show;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use connectors::pull::{ALL, Provider};
use domain::shown::shown;
use domain::{Caller, JobKind, SourceId, SourceStatus, Transport};
use engine::failures::{self, Again};
use engine::pull::jobs::Asked;
use engine::pull::words::{cadence, in_a_row};
use engine::{Config, Env, sources};
use web::api::failures::RetryAsked;
use web::api::forget::Forgotten;
use web::api::sources::SyncAsked;

use self::connect::{FromStdin, dash};
pub(super) use self::find::find;
use self::find::{found, with_hint};
use super::{Consent, Shared, caller, env, hinted, print_json, progress};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Connect an account. Prints the URL to open in a browser, or reads a key.
    Connect {
        #[arg(help = one_of(), value_parser = provider)]
        provider: Provider,
        /// Read a key from stdin, such as the token of a private app. Never on the command line, where others see it.
        #[arg(long, value_name = "-", value_parser = dash)]
        key: Option<FromStdin>,
        /// Use built-in sample data; no account is needed.
        #[arg(long, conflicts_with_all = ["key", "mcp"])]
        fixtures: bool,
        #[arg(long, help = through_mcp())]
        mcp: bool,
    },
    /// List the sources and their states.
    List,
    /// Show a source: its documents, its latest jobs, records that could not be read, events.
    Show {
        #[arg(help = MEANT)]
        source: String,
    },
    /// Read changes since the last sync.
    Sync {
        #[arg(help = MEANT)]
        source: String,
        /// Read everything, and delete here what the provider no longer has.
        #[arg(long)]
        full: bool,
        /// Show its progress until it ends.
        #[arg(long)]
        wait: bool,
    },
    /// Count a mailbox's messages at its provider, and compare them with what is stored.
    Check(check::Args),
    /// Set how often it is synced automatically.
    Every {
        #[arg(help = MEANT)]
        source: String,
        /// Such as 15m, 6h or 1d. A day or more means at night.
        #[arg(value_parser = cadence::parse)]
        every: Duration,
    },
    /// Stop reading until resumed. A running sync stops after its page.
    Pause {
        #[arg(help = MEANT)]
        source: String,
    },
    /// Continue where it stopped.
    Resume {
        #[arg(help = MEANT)]
        source: String,
    },
    /// Read failed records again, in one job.
    Retry {
        #[arg(help = MEANT)]
        source: String,
        /// One of the records that `show` lists, skipped or not. Default: all that are not skipped.
        record: Option<String>,
    },
    /// Ignore a record that could not be read.
    Skip {
        #[arg(help = MEANT)]
        source: String,
        /// One of the records that `show` lists.
        record: String,
    },
    /// Give a source new tokens. Prints the URL to open in a browser, or reads a key.
    Reconnect {
        #[arg(help = MEANT)]
        source: String,
        /// Read a key from stdin.
        #[arg(long, value_name = "-", value_parser = dash)]
        key: Option<FromStdin>,
    },
    /// A mailbox's places, its rules, and what these left out.
    Mail {
        #[arg(help = MEANT)]
        source: String,
        #[command(subcommand)]
        act: mail::Act,
    },
    /// Disconnect a source and delete everything that came from it. Shows what will be deleted, and asks.
    Forget {
        #[arg(help = MEANT)]
        source: String,
        #[command(flatten)]
        consent: Consent,
        /// Only disconnect it. Its documents stay.
        #[arg(long)]
        keep: bool,
    },
}

/// Help of an argument.
const MEANT: &str = "The source's name or id, or its provider if that has only one";

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
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let is_json = args.shared.json;
    match args.command {
        Command::Connect { provider, key, fixtures, mcp } => {
            let transport = match (fixtures, mcp) {
                (true, _) => Transport::Fixtures,
                (false, true) => Transport::Mcp,
                (false, false) => Transport::Rest,
            };
            connect::connect(&env, &caller, provider, key, transport, is_json).await
        }
        Command::List => show::list(&env, &caller, is_json).await,
        Command::Show { source } => show::show(&env, &caller, &source, is_json).await,
        Command::Sync { source, full, wait } => sync(&env, &caller, &source, full, wait, is_json).await,
        Command::Check(args) => check::run(&env, &caller, &args, is_json).await,
        Command::Every { source, every } => {
            let id = find(&env, &caller, &source).await?;
            sources::set_sync_every(&env, &caller, id, every).await.map_err(|error| with_hint(error, id))?;
            say(&env, &caller, id, &format!("synced every {} from now on", cadence::spelled(every)), is_json).await
        }
        Command::Pause { source } => {
            let id = find(&env, &caller, &source).await?;
            sources::pause(&env, &caller, id).await.map_err(|error| with_hint(error, id))?;
            let words = format!("paused; `tributary source resume {id}` goes on where it stopped");
            say(&env, &caller, id, &words, is_json).await
        }
        Command::Resume { source } => {
            let id = find(&env, &caller, &source).await?;
            sources::resume(&env, &caller, id).await.map_err(|error| with_hint(error, id))?;
            say(&env, &caller, id, "resumed", is_json).await
        }
        Command::Retry { source, record } => {
            let id = find(&env, &caller, &source).await?;
            retry(&env, &caller, id, record.as_deref(), is_json).await
        }
        Command::Skip { source, record } => {
            let id = find(&env, &caller, &source).await?;
            let missing = || {
                let what = "is none that could not be read, or is left out already";
                format!("{} {what}\n\nhint: `tributary source show {id}` lists them", shown(&record))
            };
            failures::skip(&env, &caller, id, &record).await.map_err(|error| hinted(error, missing))?;
            let words = format!("it is left out; `tributary source retry {id} {}` tries it again", shown(&record));
            say(&env, &caller, id, &words, is_json).await
        }
        Command::Reconnect { source, key } => {
            let source = found(&env, &caller, &source).await?;
            connect::reconnect(&env, &caller, &source, key, is_json).await
        }
        Command::Mail { source, act } => {
            let id = find(&env, &caller, &source).await?;
            mail::run(&env, &caller, id, act, is_json).await
        }
        Command::Forget { source, consent, keep } => forget(&env, &caller, &source, &consent, keep, is_json).await,
    }
}

async fn sync(
    env: &Env,
    caller: &Caller,
    text: &str,
    full: bool,
    wait: bool,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let id = find(env, caller, text).await?;
    let asked = sources::sync(env, caller, id, full.then_some(JobKind::Full)).await;
    let asked = asked.map_err(|error| with_hint(error, id))?;
    let (job_id, said) = match asked {
        Asked::Started(job_id) => (job_id, "asked for"),
        Asked::Running(job_id) => (job_id, "under way already; it will run again after this one"),
    };
    if wait {
        eprintln!("job {job_id}: {said}");
        return progress::watch(env, caller, job_id, is_json).await;
    }
    if is_json {
        print_json(&SyncAsked::from(asked))?;
    } else {
        println!("job {job_id}");
        eprintln!("{said}; `tributary job show {job_id} --watch` shows how far it is");
    }
    Ok(ExitCode::SUCCESS)
}

async fn retry(
    env: &Env,
    caller: &Caller,
    id: SourceId,
    record: Option<&str>,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let again = match record {
        Some(record) => failures::retry(env, caller, id, record).await,
        None => failures::retry_all(env, caller, id).await,
    };
    match again.map_err(|error| with_hint(error, id))? {
        again @ (Again::Started { .. } | Again::Running { .. }) if is_json => print_json(&RetryAsked::of(again))?,
        Again::Started { job_id, n, left_out } => {
            println!("job {job_id} reads {n} again; `tributary job show {job_id} --watch` shows how far it is");
            tell_left_out(left_out);
        }
        Again::Running { job_id, left_out } => {
            println!(
                "a sync is under way; the records are read again after it\nhint: `tributary job show {job_id} --watch` shows when it has ended"
            );
            tell_left_out(left_out);
        }
        Again::Nameless => {
            bail!("it has no id to ask for it by\n\nhint: `tributary source sync {id} --full` tries it again")
        }
        Again::Unknown => bail!(
            "there is nothing of that to read again\n\nhint: `tributary source show {id}` lists what could not be read"
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// One job reads only so many records.
fn tell_left_out(left_out: usize) {
    if left_out > 0 {
        println!("{left_out} more are too many for one job; run this again when it has ended");
    }
}

async fn forget(
    env: &Env,
    caller: &Caller,
    text: &str,
    consent: &Consent,
    keep: bool,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let source = found(env, caller, text).await?;
    let id = SourceId(source.id);
    let all = engine::forgetting::counted(&sources::count(env, caller, id).await?);
    let name = shown(&source.name);
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
    if !consent.given(if keep { "Disconnect it?" } else { "Forget all of it?" })? {
        return Ok(ExitCode::FAILURE);
    }
    if keep {
        if source.status != SourceStatus::Disconnected {
            sources::disconnect(env, caller, id).await.map_err(|error| with_hint(error, id))?;
        }
        let words = format!("disconnected; `tributary source reconnect {id}` connects it again");
        return say(env, caller, id, &words, is_json).await;
    }
    let going = sources::forget(env, caller, id).await.map_err(|error| with_hint(error, id))?;
    if is_json {
        print_json(&Forgotten::from(going))?;
    } else {
        println!("disconnected; a worker removes what came from it, step by step");
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what was done, in words or as the source is now.
async fn say(env: &Env, caller: &Caller, id: SourceId, words: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    if is_json {
        print_json(&web::api::sources::Source::new(env, sources::get(env, caller, id).await?))?;
    } else {
        println!("{words}");
    }
    Ok(ExitCode::SUCCESS)
}
