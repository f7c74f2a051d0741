//! `tributary forgotten`: the records of what was removed for good.

use std::process::ExitCode;

use domain::shown::clipped;
use engine::{Config, forgetting};
use store::forgotten::Line;
use web::api::forget::Records;

use super::{Shared, caller, env, print_json, table};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let lines = forgetting::list(&env, &caller).await?;
    if args.shared.json {
        print_json(&Records::from(lines))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |line: &Line| {
        vec![
            clipped(&line.what, 60),
            if line.done_at.is_some() { "gone" } else { "going" }.to_owned(),
            forgetting::progress(line),
            clipped(&line.by, 40),
            line.asked_at.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
        ]
    };
    table::print(&["what", "state", "removed", "asked by", "asked"], &lines.iter().map(row).collect::<Vec<_>>());
    Ok(ExitCode::SUCCESS)
}
