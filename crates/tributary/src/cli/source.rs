//! `tributary source`: accounts at providers that are read into memory.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use clap::Subcommand;
use domain::shown::{clipped, shown};
use domain::{Caller, JobId, JobKind, Provider, Secret, SourceId, SourceStatus, TenantId, Transport};
use engine::pull::connect::{self, ConnectError};
use engine::pull::jobs::{self, Asked};
use engine::{Config, Env};
use serde_json::{Value, json};
use store::forgotten;
use store::jobs::{Failure, Filter, Job};
use store::sources::{self, Event, Source};

use super::{caller, env, job, progress, table, words};

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
        /// hubspot, google_drive or quickbooks.
        provider: Provider,
        /// Read a key from stdin, such as the token of a HubSpot private app. Never on the command line, where others see it.
        #[arg(long, value_name = "-", value_parser = dash)]
        key: Option<FromStdin>,
        /// Sample data that ships with this program: no account anywhere.
        #[arg(long, conflicts_with_all = ["key", "mcp"])]
        fixtures: bool,
        /// Read it through the provider's MCP server. Every sync reads everything then, since MCP knows no changes.
        #[arg(long)]
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
    /// Read nothing more until resumed; what runs stops after its page.
    Pause { source: String },
    /// Go on where it stopped.
    Resume { source: String },
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

/// A key in an argument is in a shell's history and in every list of processes.
#[derive(Clone, Copy)]
struct FromStdin;

fn dash(text: &str) -> Result<FromStdin, String> {
    if text == "-" { Ok(FromStdin) } else { Err("a key is read from stdin: write `--key -` and paste it".into()) }
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.tenant.as_deref()).await?;
    let (tenant_id, is_json) = (caller.tenant_id, args.json);
    match args.command {
        Command::Connect { provider, key, fixtures, mcp } => {
            let transport = if mcp { Transport::Mcp } else { Transport::Rest };
            if fixtures {
                return connected(connect::with_fixtures(&env, tenant_id, provider).await, is_json);
            }
            match key {
                Some(FromStdin) => {
                    let key = read_key(provider)?;
                    connected(connect::with_key(&env, tenant_id, provider, &key, None, transport).await, is_json)
                }
                None => lead_to(&env, provider, None, transport, is_json),
            }
        }
        Command::List => list(&env, tenant_id, is_json).await,
        Command::Show { source } => show(&env, tenant_id, &source, is_json).await,
        Command::Sync { source, full, wait } => sync(&env, tenant_id, &source, full, wait, is_json).await,
        Command::Pause { source } => {
            let id = find(&env, tenant_id, &source).await?;
            done(jobs::pause_source(&env, tenant_id, id).await, id)?;
            println!("paused; `tributary source resume {id}` goes on where it stopped");
            Ok(ExitCode::SUCCESS)
        }
        Command::Resume { source } => {
            let id = find(&env, tenant_id, &source).await?;
            done(jobs::resume_source(&env, tenant_id, id).await, id)?;
            println!("resumed");
            Ok(ExitCode::SUCCESS)
        }
        Command::Reconnect { source, key } => {
            let source = found(&env, tenant_id, &source).await?;
            let provider = source.provider().context("nobody knows this provider")?;
            let id = SourceId(source.id);
            match key {
                Some(FromStdin) => {
                    let key = read_key(provider)?;
                    let reconnected = connect::with_key(&env, tenant_id, provider, &key, Some(id), source.transport());
                    connected(reconnected.await, is_json)
                }
                None => lead_to(&env, provider, Some(id), source.transport(), is_json),
            }
        }
        Command::Forget { source, yes, keep } => forget(&env, &caller, &source, yes, keep, is_json).await,
    }
}

fn read_key(provider: Provider) -> anyhow::Result<Secret> {
    if std::io::stdin().is_terminal() {
        eprint!("Paste the key of {}, then Enter: ", provider.label());
        std::io::stderr().flush()?;
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("stdin cannot be read")?;
    match line.trim() {
        "" => {
            bail!("there is no key on stdin\n\nhint: paste it, or `tributary source connect {provider} --key - < FILE`")
        }
        key => Ok(Secret::new(key)),
    }
}

fn connected(made: Result<SourceId, ConnectError>, is_json: bool) -> anyhow::Result<ExitCode> {
    let id = made?;
    if is_json {
        println!("{}", serde_json::to_string_pretty(&json!({ "id": id }))?);
    } else {
        println!("source {id}");
        eprintln!("Its sync has begun; `tributary source sync {id} --wait` shows how far it is.");
    }
    Ok(ExitCode::SUCCESS)
}

/// A person allows it in a browser, at the provider's own pages. Where our app is not set up there, says what is missing.
fn lead_to(
    env: &Env,
    provider: Provider,
    reconnect: Option<SourceId>,
    transport: Transport,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let url = connect::start_url(env, provider, reconnect, transport);
    let (redirect_url, settings) = (connect::redirect_uri(env, provider), words::settings(provider));
    let is_set_up = env.providers.app(provider).is_some();
    if is_json {
        let shown = json!({ "url": url, "is_set_up": is_set_up, "redirect_url": redirect_url, "settings": settings });
        println!("{}", serde_json::to_string_pretty(&shown)?);
    } else {
        println!("{url}");
        eprintln!("\nOpen it in a browser that is signed in here (`tributary signin` prints a link that does that).");
    }
    if is_set_up {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "\nBefore that works, once: {} has to know this installation, and the settings that this command sees do not name it.\n\
         1. Make {} and register this redirect URL there, exactly:\n     {redirect_url}\n\
         2. Set {} for the server and the workers, and start them again.\n\
         docs/connect.md has the steps.",
        provider.label(),
        words::app(provider),
        settings.join(" and ")
    );
    if provider == Provider::Hubspot {
        eprintln!("Or give it the token of a private app: `tributary source connect hubspot --key -`.");
    }
    eprintln!("To see it without any account: `tributary source connect {provider} --fixtures`, or `tributary demo`.");
    Ok(ExitCode::FAILURE)
}

/// The job that waits or runs, else the last one.
async fn latest(conn: &mut store::PgConnection, source: &Source) -> anyhow::Result<Option<Job>> {
    let (tenant_id, source_id) = (TenantId(source.tenant_id), Some(SourceId(source.id)));
    if let Some(id) = source.live_job {
        return Ok(store::jobs::get(conn, tenant_id, JobId(id)).await?);
    }
    Ok(store::jobs::list(conn, tenant_id, Filter { source_id, limit: 1, ..Filter::default() }).await?.pop())
}

async fn list(env: &Env, tenant_id: TenantId, is_json: bool) -> anyhow::Result<ExitCode> {
    let mut conn = env.db.acquire().await?;
    let listed = sources::list(&mut conn, tenant_id, None).await?;
    let mut health = Vec::new();
    for source in &listed {
        health.push(words::health(source, latest(&mut conn, source).await?.as_ref()));
    }
    if is_json {
        let both = listed.iter().zip(&health);
        let listed = both.map(|(source, health)| as_json(source, health)).collect::<anyhow::Result<Vec<_>>>()?;
        println!("{}", serde_json::to_string_pretty(&listed)?);
        return Ok(ExitCode::SUCCESS);
    }
    if listed.is_empty() {
        eprintln!("No source is connected yet: `tributary source connect hubspot`, google_drive or quickbooks.");
        return Ok(ExitCode::SUCCESS);
    }
    let now = env.clock.now();
    let row = |(source, health): (&Source, &words::Health)| {
        vec![
            source.id.to_string(),
            clipped(&source.name, 40),
            source.label().to_owned(),
            health.word.to_owned(),
            progress::grouped(source.n_documents),
            source.last_successful_sync_at.map_or_else(|| "never".into(), |at| table::ago(at, now)),
            source.next_sync_at.map_or_else(String::new, |at| ahead(at, now)),
        ]
    };
    table::print(
        &["id", "name", "provider", "health", "documents", "synced", "next"],
        &listed.iter().zip(&health).map(row).collect::<Vec<_>>(),
    );
    for (source, health) in listed.iter().zip(&health).filter(|(_, health)| health.is_trouble) {
        let todo = if health.word == "reconnect" { "reconnect" } else { "show" };
        eprintln!("\n{}: {}\nhint: `tributary source {todo} {}`", shown(&source.name), health.what, source.id);
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(env: &Env, tenant_id: TenantId, text: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    let source = found(env, tenant_id, text).await?;
    let id = SourceId(source.id);
    let mut conn = env.db.acquire().await?;
    let counts = sources::counts(&mut conn, tenant_id, id).await?;
    let filter = Filter { source_id: Some(id), limit: 5, ..Filter::default() };
    let jobs = store::jobs::list(&mut conn, tenant_id, filter).await?;
    let health = words::health(&source, latest(&mut conn, &source).await?.as_ref());
    let failures = store::jobs::failures(&mut conn, tenant_id, id, 20).await?;
    let events = sources::events(&mut conn, tenant_id, Some(id), 10).await?;
    if is_json {
        let mut value = as_json(&source, &health)?;
        value["counts"] =
            counts.into_iter().map(|(kind, n)| (kind, json!(n))).collect::<serde_json::Map<_, _>>().into();
        value["jobs"] = serde_json::to_value(&jobs)?;
        value["failures"] = serde_json::to_value(&failures)?;
        value["events"] = serde_json::to_value(&events)?;
        println!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(ExitCode::SUCCESS);
    }
    let now = env.clock.now();
    let read = match source.transport() {
        Transport::Rest => "by its API",
        Transport::Mcp => "through its MCP server",
        Transport::Fixtures => "sample data",
    };
    let by_type: Vec<String> =
        counts.iter().map(|(kind, n)| format!("{} {}", progress::grouped(*n), shown(kind))).collect();
    let facts = [
        ("id", source.id.to_string()),
        ("name", shown(&source.name)),
        ("provider", format!("{}, {read}", source.label())),
        ("account", shown(source.account.as_deref().unwrap_or_default())),
        ("health", format!("{}: {}", health.word, health.what)),
        ("documents", if by_type.is_empty() { "none".into() } else { by_type.join(", ") }),
        ("connected", table::ago(source.created_at, now)),
        ("synced", source.last_successful_sync_at.map_or_else(|| "never".into(), |at| table::ago(at, now))),
        ("next sync", source.next_sync_at.map(|at| ahead(at, now)).unwrap_or_default()),
        (
            "token",
            source.token_expires_at.map(|at| format!("renewed by itself, next {}", ahead(at, now))).unwrap_or_default(),
        ),
    ];
    for (label, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        println!("{label:10} {fact}");
    }
    if !jobs.is_empty() {
        println!("\nLatest jobs");
        job::print(&jobs, now);
    }
    if !failures.is_empty() {
        println!("\nCould not be read");
        let row = |failure: &Failure| {
            let is_skipped = failure.skipped_at.is_some();
            vec![
                clipped(&failure.external_id, 40),
                table::ago(failure.failed_at, now),
                if is_skipped { "skipped".into() } else { format!("{}×", failure.n_failed) },
                clipped(&failure.reason, 70),
            ]
        };
        table::print(&["record", "when", "", "why"], &failures.iter().map(row).collect::<Vec<_>>());
    }
    if !events.is_empty() {
        println!("\nLately");
        let row = |event: &Event| vec![table::ago(event.at, now), shown(&event.what)];
        table::print(&["when", "what"], &events.iter().map(row).collect::<Vec<_>>());
    }
    Ok(ExitCode::SUCCESS)
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
        Asked::Running(job_id) => (job_id, "under way already"),
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
        "{} documents in {} chunks, {} clients, {} jobs",
        progress::grouped(counted.documents),
        progress::grouped(counted.chunks),
        progress::grouped(counted.clients),
        progress::grouped(counted.jobs)
    );
    if keep {
        eprintln!(
            "{name} ({}) will be disconnected: its tokens go, and nothing more is read.\nKept: {all}",
            source.label()
        );
    } else {
        eprintln!("{name} ({}) will be forgotten, and this cannot be undone.\nGoes with it: {all}", source.label());
    }
    if !yes && !is_agreed(if keep { "Disconnect it?" } else { "Forget all of it?" })? {
        eprintln!("nothing was done");
        return Ok(ExitCode::FAILURE);
    }
    if keep {
        if source.status() != SourceStatus::Disconnected {
            done(connect::disconnect(env, tenant_id, id).await, id)?;
        }
        println!("disconnected; `tributary source reconnect {id}` connects it again");
        return Ok(ExitCode::SUCCESS);
    }
    let going = connect::forget(env, tenant_id, id, &caller.key_name).await?.with_context(|| gone(id))?;
    if is_json {
        println!("{}", serde_json::to_string_pretty(&going)?);
    } else {
        println!("disconnected; a worker removes what came from it, step by step");
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

fn as_json(source: &Source, health: &words::Health) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(source)?;
    value["health"] = json!({ "word": health.word, "what": health.what, "is_trouble": health.is_trouble });
    Ok(value)
}

/// The id of the source meant.
pub(super) async fn find(env: &Env, tenant_id: TenantId, text: &str) -> anyhow::Result<SourceId> {
    Ok(SourceId(found(env, tenant_id, text).await?.id))
}

async fn found(env: &Env, tenant_id: TenantId, text: &str) -> anyhow::Result<Source> {
    let mut conn = env.db.acquire().await?;
    let listed = sources::list(&mut conn, tenant_id, None).await?;
    let nth = meant(&listed, text)
        .map_err(|why| anyhow::anyhow!("{why}\n\nhint: `tributary source list` shows them with their ids"))?;
    listed.into_iter().nth(nth).context("the source is gone")
}

/// Which source is meant: by its id or the beginning of it, else by name or provider; those that are disconnected only where no other is.
fn meant(listed: &[Source], text: &str) -> Result<usize, String> {
    let wanted = text.to_lowercase();
    let by_id = |source: &Source| wanted.len() >= 4 && source.id.to_string().starts_with(&wanted);
    let by_name = |source: &Source| source.name.to_lowercase() == wanted || source.provider == wanted;
    let all = |is_meant: &dyn Fn(&Source) -> bool| -> Vec<usize> {
        let places = listed.iter().enumerate().filter(|(_, source)| is_meant(source));
        let (live, gone): (Vec<_>, Vec<_>) =
            places.partition(|(_, source)| source.status() != SourceStatus::Disconnected);
        let of = if live.is_empty() { gone } else { live };
        of.into_iter().map(|(nth, _)| nth).collect()
    };
    let found = Some(all(&by_id)).filter(|found| !found.is_empty()).unwrap_or_else(|| all(&by_name));
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(format!("there is no source {text:?}")),
        several => Err(format!("{} sources are meant by {text:?}", several.len())),
    }
}

/// "in 3 min", "now".
fn ahead(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (at - now).num_seconds() {
        ..=0 => "now".into(),
        secs @ 1..120 => format!("in {secs} s"),
        secs @ 120..7_200 => format!("in {} min", secs / 60),
        secs => format!("in {} h", secs / 3_600),
    }
}

fn done(went: store::Result<bool>, id: SourceId) -> anyhow::Result<()> {
    if !went.map_err(|error| hinted(error, id))? {
        bail!(gone(id));
    }
    Ok(())
}

fn gone(id: SourceId) -> String {
    format!("there is no source {id}\n\nhint: `tributary source list` shows them")
}

/// What a source's state does not allow, with what to do first.
fn hinted(error: store::Error, id: SourceId) -> anyhow::Error {
    let words = error.to_string();
    let first = match &words {
        words if words.contains("paused:") => "resume",
        words if words.contains("connect") => "reconnect",
        _ => "show",
    };
    match error {
        store::Error::Conflict(_) => anyhow::anyhow!("{words}\n\nhint: `tributary source {first} {id}`"),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn source(id: u128, name: &str, provider: &str, status: &str) -> Source {
        let (id, name, provider) = (Uuid::from_u128(id), name.to_owned(), provider.to_owned());
        Source { id, name, provider, ..words::tests::source(status) }
    }

    #[test]
    fn a_source_is_meant_by_its_id_its_name_or_its_provider() {
        let listed = [
            source(0x7f3a_0000 << 96, "Harrow Ridge", "hubspot", "active"),
            source(0x7f3b_0000 << 96, "Books", "quickbooks", "active"),
            source(0x8000_0000 << 96, "Harrow Ridge", "hubspot", "disconnected"),
            source(0x9000_0000 << 96, "Other books", "quickbooks", "paused"),
        ];
        for (text, expected) in
            [("7f3a", Ok(0)), ("7F3B0000", Ok(1)), ("hubspot", Ok(0)), ("other BOOKS", Ok(3)), ("8000", Ok(2))]
        {
            assert_eq!(meant(&listed, text), expected, "{text}");
        }
        assert_eq!(meant(&listed, "quickbooks"), Err("2 sources are meant by \"quickbooks\"".into()));
        assert_eq!(meant(&listed, "slack"), Err("there is no source \"slack\"".into()));
        assert_eq!(meant(&listed, ""), Err("there is no source \"\"".into()));
    }

    #[test]
    fn a_key_is_never_an_argument() {
        assert!(dash("-").is_ok());
        assert!(dash("pat-na1-1234").is_err());
    }
}
