//! `tributary bench`: each case compares us with a limit of the same run. Cases without HTTP are in `engine::bench`.

mod claims;
mod client;
mod door;
mod embed;
mod files;
mod intake;
mod mailbox;
mod mcp;
mod notice;
mod pull;
mod relevance;
mod scratch;
mod search;

use std::process::ExitCode;

use clap::Subcommand;
use engine::config::EmbedderKind;
use engine::{Config, bench, database};

use self::scratch::Scratch;
use super::table;

#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object per case and line, for scripts.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The lane runtime, compared with pgmq's own functions.
    Queue,
    /// A tenant's waiting time beside 100,000 items of another one, beside its waiting time in an idle lane.
    Fair,
    /// Signed events over HTTP, compared with pgbench inserting the same rows, one commit each.
    Intake(intake::Args),
    /// How long a tenant's senders wait for their answer while another tenant's channel is held by 1,000 connections, or flooded, compared
    /// with how long they wait on an idle server.
    Door(door::Args),
    /// Claims and completions, compared with a bare SKIP LOCKED and UPDATE of the same rows; also one at a time over HTTP.
    Claims,
    /// `search_memory` over MCP, compared with the same search over the API; and 200 clients at once.
    Mcp(mcp::Args),
    /// The time from an event's arrival to its listeners, compared with a bare NOTIFY round trip.
    Notice,
    /// A first sync of many records, compared with only fetching the same pages; then again with nothing changed.
    Pull(pull::Args),
    /// A first sync and a delta of mailboxes, compared with what their providers' limits allow; from a letter's arrival until it is found; the
    /// memory of silent mailboxes.
    Mailbox(mailbox::Args),
    /// Files from their arrival until they are read, compared with the bare reader; from a file's arrival until it is found; memory.
    Files(files::Args),
    /// Vectors made by `local`, compared with the bare library; questions alone and beside documents; memory.
    Embed(embed::Args),
    /// remember(), compared with a bare INSERT of the same rows and vectors.
    Remember,
    /// The share of an exact search's first ten results that the real search finds, over real manuals, and its speed, compared with a bare
    /// pgvector and GIN statement; also while another tenant's documents are written.
    Search(search::Args),
    /// Whether questions about real manuals find the document that answers them, compared with textbook BM25 over the same chunks.
    Relevance(relevance::Args),
}

/// Unless an embedder `is_chosen`, the other cases use the one that takes next to no time: they measure everything else.
pub async fn run(config: Config, is_chosen: bool, args: Args) -> anyhow::Result<ExitCode> {
    if let Command::Embed(wanted) = &args.command {
        print(&embed::run(&config, wanted).await?, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let config = if is_chosen { config } else { Config { embedder: EmbedderKind::Fast, ..config } };
    // Many calls of one key are what is measured.
    let is_mcp = matches!(args.command, Command::Mcp(_));
    let config = if is_mcp { Config { mcp_calls_per_minute: u32::MAX, ..config } } else { config };
    let database = database::start(&config).await?;
    let measured = async {
        database.migrate().await?;
        if let Command::Queue = args.command {
            eprintln!("measuring; about a minute");
            return bench::queue(&database, &config).await;
        }
        if let Command::Pull(args) = &args.command {
            let (fakes, config) = pull::provider(&config).await;
            let scratch = Scratch::make(&database, &config).await?;
            let measured = pull::run(&scratch, &fakes, args).await;
            let removed = scratch.remove().await;
            return measured.and_then(|cases| removed.map(|()| cases));
        }
        if let Command::Mailbox(args) = &args.command {
            let (fakes, config) = mailbox::providers(&config).await;
            let scratch = Scratch::make(&database, &config).await?;
            let measured = mailbox::run(&scratch, &fakes, args).await;
            let removed = scratch.remove().await;
            return measured.and_then(|cases| removed.map(|()| cases));
        }
        let scratch = match &args.command {
            Command::Relevance(args) if args.keep => Scratch::keep(&database, &config, "relevance").await?,
            _ => Scratch::make(&database, &config).await?,
        };
        let measured = match args.command {
            Command::Queue | Command::Pull(_) | Command::Mailbox(_) | Command::Embed(_) => Ok(Vec::new()),
            Command::Intake(args) => intake::run(&scratch, &args).await,
            Command::Door(args) => door::run(&scratch, &args).await,
            Command::Claims => claims::run(&scratch).await,
            Command::Fair => {
                eprintln!("measuring; about two minutes");
                bench::fair(&scratch.env, scratch.tenant_id).await
            }
            Command::Files(args) => files::run(&scratch, &args).await,
            Command::Mcp(args) => mcp::run(&scratch, &args).await,
            Command::Notice => notice::run(&scratch).await,
            Command::Remember => remember(&scratch).await,
            Command::Search(args) => search::run(&scratch, &args).await,
            Command::Relevance(args) => relevance::run(&scratch, &args).await,
        };
        let removed = scratch.remove().await;
        measured.and_then(|cases| removed.map(|()| cases))
    };
    let measured = measured.await;
    let released = database.release(&config).await;
    let cases = measured?;
    released?;
    print(&cases, args.json)?;
    Ok(ExitCode::SUCCESS)
}

async fn remember(scratch: &Scratch) -> anyhow::Result<Vec<bench::Case>> {
    eprintln!("measuring; about two minutes");
    let mut case = bench::remember(&scratch.env, scratch.tenant_id).await?;
    let steps = scratch.shares("tributary_remember_seconds", "step");
    let all: f64 = steps.iter().map(|(_, secs)| secs).sum();
    let words: Vec<String> =
        steps.iter().map(|(step, secs)| format!("{step} {:.0}%", 100.0 * secs / all.max(f64::MIN_POSITIVE))).collect();
    case.note = format!("time of a batch before its commit: {}", words.join(", "));
    Ok(vec![case])
}

fn print(cases: &[bench::Case], is_json: bool) -> anyhow::Result<()> {
    if is_json {
        for case in cases {
            println!("{}", serde_json::to_string(case)?);
        }
        return Ok(());
    }
    let number = |x: f64| if x.abs() < 10.0 { format!("{x:.3}") } else { format!("{x:.0}") };
    let row = |case: &bench::Case| {
        vec![
            case.case.clone(),
            number(case.ours),
            number(case.limit),
            format!("{:.2}", case.ratio),
            case.unit.into(),
            format!("{:.2}", case.p50_ms),
            format!("{:.2}", case.p99_ms),
        ]
    };
    table::print(
        &["case", "ours", "limit", "ratio", "unit", "p50 ms", "p99 ms"],
        &cases.iter().map(row).collect::<Vec<_>>(),
    );
    for case in cases.iter().filter(|case| !case.note.is_empty()) {
        println!("{}: {}", case.case, case.note);
    }
    Ok(())
}
