//! `tributary config`: prints every setting, and how long data is kept. Secrets print as `***`.

use std::process::ExitCode;

use clap::ArgMatches;
use engine::config::in_force;
use engine::lanes;
use engine::work::Slots;
use store::retention;

use super::table;

#[derive(clap::Args)]
pub struct Args {
    /// Print JSON, for scripts.
    #[arg(long)]
    json: bool,
}

pub fn run(command: &clap::Command, matches: &ArgMatches, args: Args) -> anyhow::Result<ExitCode> {
    let settings = in_force(command, matches);
    if args.json {
        let all = serde_json::json!({ "settings": settings, "retention": retention::RULES });
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> =
        settings.into_iter().map(|setting| vec![setting.name, setting.value, setting.from.into()]).collect();
    table::print(&["setting", "value", "from"], &rows);
    println!();
    let kept: Vec<Vec<String>> = retention::RULES
        .iter()
        .map(|rule| vec![rule.table.into(), format!("{} days", rule.keep_days), rule.what.into()])
        .collect();
    table::print(&["table", "kept", "what"], &kept);
    println!();
    let slots = matches.get_one::<Slots>("lane_slots");
    let work: Vec<Vec<String>> = lanes::ALL
        .iter()
        .map(|lane| {
            let slots = slots.map(|slots| slots.of(lane).to_string()).unwrap_or_default();
            vec![lane.name.into(), slots, lane.batch.to_string(), lane.max_attempts.to_string()]
        })
        .collect();
    table::print(&["lane", "slots", "items a batch", "attempts"], &work);
    println!();
    let ticks: Vec<Vec<String>> = lanes::SCHEDULES
        .iter()
        .map(|tick| vec![tick.name.into(), format!("{} s", tick.every.as_secs()), tick.what.into()])
        .collect();
    table::print(&["schedule", "every", "what"], &ticks);
    Ok(ExitCode::SUCCESS)
}
