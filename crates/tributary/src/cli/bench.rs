//! `tributary bench`: what it measures is in `engine::bench`.

use std::process::ExitCode;

use clap::Subcommand;
use engine::{Config, bench, database};

use super::table;

#[derive(clap::Args)]
pub struct Args {
    /// One JSON object a case and line, for scripts.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The lane runtime beside pgmq's own functions.
    Queue,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let database = database::start(&config).await?;
    let Command::Queue = args.command;
    let measured = async {
        database.migrate().await?;
        eprintln!("measuring; about a minute");
        bench::queue(&database, &config).await
    };
    let measured = measured.await;
    let released = database.release(&config).await;
    let cases = measured?;
    released?;
    if args.json {
        for case in &cases {
            println!("{}", serde_json::to_string(case)?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let row = |case: &bench::Case| {
        let number = |x: f64| format!("{x:.0}");
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
    Ok(ExitCode::SUCCESS)
}
