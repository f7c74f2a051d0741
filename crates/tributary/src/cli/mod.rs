//! The commands, one file each. Data goes to stdout, everything else to stderr.

mod activity;
mod agent;
mod ask;
mod backup;
mod bench;
mod channel;
mod client;
mod completions;
mod config;
mod contact;
mod demo;
mod doctor;
mod document;
mod down;
mod forgotten;
mod job;
mod key;
mod mail;
mod man;
mod mcp;
mod memory;
mod migrate;
mod person;
mod pick;
mod process;
mod progress;
mod queue;
mod remember;
mod restore;
mod search;
mod sender;
mod settings;
mod source;
mod table;
mod tenant;
mod up;
mod words;
mod worker;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use domain::Caller;
use engine::{ActError, Config, Env};

/// A self-hosted ingestion engine: collects what a company hears and knows into one memory.
#[derive(Parser)]
#[command(name = "tributary", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub config: Config,
    /// Print every setting, each an option of all commands and an environment variable.
    #[arg(long, global = true)]
    help_settings: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything on this machine: database, server, workers.
    Up,
    /// Show everything with built-in providers, including faults and recoveries. Needs no account.
    Demo(demo::Args),
    /// Stop what `up` started, including the embedded database.
    Down,
    /// Run the HTTP server alone: API and dashboard.
    Serve,
    /// Run a worker alone, or list the workers.
    Worker(worker::Args),
    /// Process activities on this device: transcribe, summarise, extract facts.
    Agent(agent::Args),
    /// Back up everything that a restore needs into a folder, while the server runs.
    Backup(backup::Args),
    /// Restore a backup into an empty data folder.
    Restore(restore::Args),
    /// Search everything remembered.
    Search(search::Args),
    /// Answer a question from everything remembered, citing a document for each sentence.
    Ask(ask::Args),
    /// Remember files or a note.
    Remember(remember::Args),
    /// Documents in memory: list, show, delete, deleted, restore.
    Document(document::Args),
    /// The model that search uses: status, reembed (move to another one), cancel.
    Memory(memory::Args),
    /// Serve a desktop program over MCP, for a server that may be elsewhere; or set a program up.
    Mcp(mcp::Args),
    /// Migrate the database to this program's schema.
    Migrate(migrate::Args),
    /// Check everything, and say what to do about each finding.
    Doctor(doctor::Args),
    /// Print every setting, its value, and where the value came from.
    Config(config::Args),
    /// Print a link that signs a browser in, once.
    Signin(key::SigninArgs),
    /// Tenants, one per customer: create, list, forget.
    Tenant(tenant::Args),
    /// API keys: create, list, revoke; and rotation of the master key.
    Key(key::Args),
    /// People, who own work and sign in: list, add, show, set, invite, sessions, end-session, remove.
    Person(person::Args),
    /// Channels for webhooks: add, list, show, set, rotate, enable, disable, delete, send-test.
    Channel(channel::Args),
    /// Accounts at providers: connect, list, show, sync, check, mail, pause, retry, reconnect, forget.
    Source(source::Args),
    /// Messages of connected mailboxes: list, show, thread.
    Mail(mail::Args),
    /// Syncs of sources: list, show, retry, cancel.
    Job(job::Args),
    /// Clients, with facts and their documents: list, show, merge, split, undo, say, withdraw.
    Client(client::Args),
    /// Activities that came in or were written: list, add, show, retry, skip, link to a contact.
    Activity(activity::Args),
    /// Contacts, the people that events come from: list, add, show, set, merge, unmerge, import, delete, forget.
    Contact(contact::Args),
    /// Senders that match no contact: list, ignore, restore.
    Sender(sender::Args),
    /// Things forgotten or being forgotten: progress, by whom, when.
    Forgotten(forgotten::Args),
    /// Lanes and their items: list, inspect, retry, skip, cancel.
    Queue(queue::Args),
    /// Measure speed, compared with a limit that is measured in the same run.
    Bench(bench::Args),
    /// Print completions for a shell, to be read when it starts.
    Completions(completions::Args),
    /// Print the manual page, or write those of all commands into a folder.
    Man(man::Args),
    /// List the points where a test can make this program die (TRIBUTARY_CRASH).
    #[command(hide = true)]
    CrashPoints,
}

// The options that the commands about a tenant's things share. It has no doc comment: clap would print that instead of a command's own.
#[derive(clap::Args)]
struct Shared {
    /// The tenant, by name or id. Default: yours.
    #[arg(long, global = true)]
    tenant: Option<String>,
    /// Print JSON, for scripts.
    #[arg(long, global = true)]
    json: bool,
}

// Asks before something cannot be undone. No doc comment here either.
#[derive(clap::Args)]
struct Consent {
    /// Do it without asking.
    #[arg(long)]
    yes: bool,
}

impl Consent {
    /// Whether a person agrees. `false`: not, and they were told that nothing was done. An error if there is nobody to ask.
    fn given(&self, question: &str) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            anyhow::bail!("there is no terminal on which to ask: {question}\n\nhint: `--yes` goes on without asking");
        }
        eprint!("{question} [y/N] ");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        let is_given = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
        if !is_given {
            eprintln!("nothing was done");
        }
        Ok(is_given)
    }
}

pub async fn run() -> anyhow::Result<ExitCode> {
    if settings::are_asked_for(std::env::args_os()) {
        settings::print();
        return Ok(ExitCode::SUCCESS);
    }
    let command = settings::hidden(Cli::command());
    let matches = command.clone().get_matches();
    let Cli { config, help_settings, command: chosen } = Cli::from_arg_matches(&matches)?;
    debug_assert!(!help_settings, "it needs no command, so it was looked for before the others");
    store::crash::arm(std::env::var("TRIBUTARY_CRASH").ok().as_deref()).map_err(anyhow::Error::msg)?;
    let config = match chosen {
        Command::Up | Command::Serve | Command::Worker(_) | Command::Bench(_) => config,
        _ => up::beside_running(config),
    };
    match chosen {
        Command::Up => up::run(config).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Down => down::run(config).await,
        Command::Serve => process::serve(config).await,
        Command::Worker(args) => worker::run(config, args).await,
        Command::Agent(args) => agent::run(config, args).await,
        Command::Backup(args) => backup::run(config, args).await,
        Command::Restore(args) => restore::run(config, args).await,
        Command::Search(args) => search::run(config, args).await,
        Command::Ask(args) => ask::run(config, args).await,
        Command::Remember(args) => remember::run(config, args).await,
        Command::Document(args) => document::run(config, args).await,
        Command::Memory(args) => memory::run(config, args).await,
        Command::Mcp(args) => mcp::run(config, args).await,
        Command::Migrate(args) => migrate::run(config, args).await,
        Command::Doctor(args) => doctor::run(config, args).await,
        Command::Config(args) => config::run(&command, &matches, args),
        Command::Signin(args) => key::signin(config, args).await,
        Command::Tenant(args) => tenant::run(config, args).await,
        Command::Key(args) => key::run(config, args).await,
        Command::Person(args) => person::run(config, args).await,
        Command::Channel(args) => channel::run(config, args).await,
        Command::Source(args) => source::run(config, args).await,
        Command::Mail(args) => mail::run(config, args).await,
        Command::Job(args) => job::run(config, args).await,
        Command::Client(args) => client::run(config, args).await,
        Command::Activity(args) => activity::run(config, args).await,
        Command::Contact(args) => contact::run(config, args).await,
        Command::Sender(args) => sender::run(config, args).await,
        Command::Forgotten(args) => forgotten::run(config, args).await,
        Command::Queue(args) => queue::run(config, args).await,
        Command::Bench(args) => {
            let is_chosen = matches.value_source("embedder") != Some(ValueSource::DefaultValue);
            bench::run(config, is_chosen, args).await
        }
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::CrashPoints => {
            for point in store::crash::Point::ALL {
                println!("{}", point.name());
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Opens the environment of a command that operates a running installation.
async fn env(config: &Config) -> anyhow::Result<Env> {
    engine::database::find(config).await?.env(config)
}

/// Prints what the API would answer, for scripts.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// The error of an act, with `hint` where what it acts on is not there.
fn hinted(error: ActError, missing: impl FnOnce() -> String) -> anyhow::Error {
    match error {
        ActError::NotFound(_) => anyhow::Error::msg(missing()),
        error => error.into(),
    }
}

/// The person at this machine, who acts for the tenant.
async fn caller(env: &Env, tenant: Option<&str>) -> anyhow::Result<Caller> {
    let found = env.db.session(async |conn| {
        Ok((store::tenants::find(conn, tenant).await?, store::tenants::ensure_operator(conn).await?))
    });
    let (found, operator) = found.await?;
    let Some(tenant_id) = found else {
        let known = engine::tenants::list(env).await?;
        let names = known.iter().map(|tenant| tenant.name.as_str());
        return Err(pick::missing(TENANT, tenant.unwrap_or_default(), names));
    };
    Ok(Caller::local("the command line", tenant_id, tenant_id == operator))
}

const TENANT: pick::Kind = pick::Kind { noun: "tenant", plural: "tenants", list: "tributary tenant list" };
