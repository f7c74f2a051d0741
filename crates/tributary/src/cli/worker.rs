//! `tributary worker`: runs the lanes. `worker list` shows the workers.

use std::process::ExitCode;

use clap::Subcommand;
use domain::shown::span;
use engine::{Config, workers};
use store::workers::{LaneState, Worker};

use super::{env, print_json, process, table};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// List the workers: alive, late, stalled, dead, stopped.
    List {
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let Some(Command::List { json }) = args.command else { return process::work(config).await };
    let env = env(&config).await?;
    let listed = workers::list(&env).await?;
    if json {
        print_json(&web::api::workers::Workers::from(listed))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |(worker, _): &(Worker, Vec<LaneState>)| {
        vec![
            worker.health().as_str().into(),
            format!("{}:{}", worker.host.as_deref().unwrap_or("?"), worker.pid.unwrap_or(0)),
            worker.role.clone().unwrap_or_default(),
            format!("{} ago", span(worker.silent_secs as i64)),
            worker.success_count.to_string(),
            worker.error_count.to_string(),
            format!("{:.1}", worker.per_minute()),
            worker.stalled_because.clone().or_else(|| worker.last_error_message.clone()).unwrap_or_default(),
        ]
    };
    table::print(
        &["health", "worker", "role", "heartbeat", "done", "errors", "a minute", "last error"],
        &listed.iter().map(row).collect::<Vec<_>>(),
    );
    Ok(ExitCode::SUCCESS)
}
