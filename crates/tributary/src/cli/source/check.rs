//! Counts a mailbox's days at its provider, and shows what came of it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use chrono::NaiveDate;
use domain::Caller;
use domain::mail::check::CheckState;
use domain::shown::relative;
use engine::failures::Again;
use engine::mail::check::words::{self, Line};
use engine::mail::check::{self, KEPT_DAYS};
use engine::{Env, sources};
use store::mail::checks::Check;
use web::api::checks::{CheckAsked, Checks};

use super::super::{print_json, table};
use super::find::{find, with_hint};

/// How often it looks whether the days are counted.
const LOOK: Duration = Duration::from_secs(1);
/// The days that are shown if none is asked for.
const SHOWN: i64 = 14;

#[derive(clap::Args)]
pub struct Args {
    #[arg(help = super::MEANT)]
    source: String,
    /// A day to count, UTC, such as 2026-11-14. Can be given several times. Default: yesterday and today.
    #[arg(long = "day", value_name = "DAY")]
    days: Vec<NaiveDate>,
    /// Wait until the days are counted. The exit code is 1 if messages differ, or a day could not be counted.
    #[arg(long)]
    wait: bool,
    /// Only show what was counted last.
    #[arg(long, conflicts_with_all = ["days", "wait", "fetch"])]
    last: bool,
    /// Have the messages read that differ, on every day, or on the days that are named. Nothing is counted before.
    #[arg(long, conflicts_with = "wait")]
    fetch: bool,
}

pub async fn run(env: &Env, caller: &Caller, args: &Args, is_json: bool) -> anyhow::Result<ExitCode> {
    let id = find(env, caller, &args.source).await?;
    if args.last {
        return show(env, caller, id, &[], is_json).await;
    }
    if args.fetch {
        return fetch(env, caller, id, &args.days).await;
    }
    let days = check::ask(env, caller, id, &args.days).await.map_err(|error| with_hint(error, id))?;
    if !args.wait {
        if is_json {
            print_json(&CheckAsked { days })?;
        } else {
            let days: Vec<String> = days.iter().map(NaiveDate::to_string).collect();
            println!("asked for: {}", days.join(", "));
            eprintln!("`tributary source check {id} --last` shows what comes of it");
        }
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        let listed = check::days(env, caller, id, KEPT_DAYS).await?;
        if !listed.iter().any(|check| days.contains(&check.day) && check.asked_at.is_some()) {
            return show(env, caller, id, &days, is_json).await;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = tokio::signal::ctrl_c() => {
                eprintln!("\nthe days are counted all the same; `tributary source check {id} --last` shows them");
                return Ok(ExitCode::from(130));
            }
        }
    }
}

/// Prints the days that were counted: these, or (none) the latest.
async fn show(
    env: &Env,
    caller: &Caller,
    id: domain::SourceId,
    days: &[NaiveDate],
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let limit = if days.is_empty() { SHOWN } else { KEPT_DAYS };
    let mut listed = check::days(env, caller, id, limit).await.map_err(|error| with_hint(error, id))?;
    listed.retain(|check| days.is_empty() || days.contains(&check.day));
    let source = sources::get(env, caller, id).await?;
    let who = env.providers.label(&source.provider);
    let is_well = listed.iter().all(|check| !matches!(check.state, CheckState::Differs | CheckState::Unknown));
    if is_json {
        print_json(&Checks::new(who, listed))?;
    } else {
        println!("{}", Line::of(who, &listed).what);
        print(env, &listed);
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(env: &Env, listed: &[Check]) {
    if listed.is_empty() {
        return;
    }
    let now = env.clock.now();
    let row = |check: &Check| {
        let counted = check.checked_at.map_or_else(|| "–".to_owned(), |at| relative(at, now));
        vec![check.day.to_string(), words::word(check).to_owned(), counted, words::account(check)]
    };
    table::print(&["day", "state", "counted", "messages"], &listed.iter().map(row).collect::<Vec<_>>());
    for check in listed {
        for (ids, what) in [(&check.missing, "missing"), (&check.surplus, "surplus")] {
            for id in ids {
                println!("{} {what} {id}", check.day);
            }
        }
    }
}

async fn fetch(env: &Env, caller: &Caller, id: domain::SourceId, days: &[NaiveDate]) -> anyhow::Result<ExitCode> {
    let n = if days.is_empty() {
        check::fetch_all_missing(env, caller, id).await.map_err(|error| with_hint(error, id))?
    } else {
        let mut n = 0;
        for day in days {
            let again = check::fetch_missing(env, caller, id, *day).await.map_err(|error| with_hint(error, id))?;
            n += usize::from(matches!(again, Again::Started { .. } | Again::Running { .. }));
        }
        n
    };
    if n == 0 {
        bail!("nothing differs that could be fetched\n\nhint: `tributary source check {id} --wait` counts again");
    }
    println!("the messages are being read; their days are counted again after it");
    eprintln!("`tributary source check {id} --last` shows what comes of it");
    Ok(ExitCode::SUCCESS)
}
