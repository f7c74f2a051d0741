//! `tributary sender`: senders that match no contact, and those that are ignored.

use std::process::ExitCode;

use clap::Subcommand;
use domain::shown::{clipped, counted, relative, shown};
use engine::senders::Unrecognised;
use engine::{Config, senders};
use store::queue::MOST_COUNTED;
use store::senders::Ignored;
use web::api::senders::Senders;

use super::{Shared, caller, env, hinted, print_json, table};

/// The number of senders of each kind in a list.
const MOST: i64 = 200;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List senders that match no contact, and those that are ignored.
    List,
    /// Ignore a sender: it is not listed among the unrecognised ones any more. Its events are stored and processed like all others.
    Ignore {
        /// Its address, as the list has it.
        address: String,
    },
    /// List a sender again that was ignored.
    Restore {
        /// Its address, as the list has it.
        address: String,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let now = env.clock.now();
    match args.command {
        Command::List => {
            let latest = senders::unrecognised(&env, &caller, MOST).await?;
            let ignored = senders::ignored(&env, &caller, MOST).await?;
            if args.shared.json {
                print_json(&Senders::from((latest, ignored)))?;
                return Ok(ExitCode::SUCCESS);
            }
            let row = |of: &Unrecognised| {
                let last = relative(of.newest.created_at, now);
                vec![clipped(&of.sender.address, 60), counted(of.sender.n, MOST_COUNTED), last, String::new()]
            };
            let ignored_row = |ignored: &Ignored| {
                let by = format!("ignored by {}", clipped(&ignored.ignored_by, 30));
                vec![clipped(&ignored.address, 60), String::new(), String::new(), by]
            };
            let rows: Vec<_> = latest.senders.iter().map(row).chain(ignored.iter().map(ignored_row)).collect();
            table::print(&["address", "activities", "last", ""], &rows);
            if i64::try_from(latest.senders.len()).is_ok_and(|n| n < latest.n) {
                eprintln!(
                    "{} match no contact; those behind come up as these are dealt with",
                    counted(latest.n, MOST_COUNTED)
                );
            }
        }
        Command::Ignore { address } => {
            senders::ignore(&env, &caller, &address).await?;
            println!("ignored; `tributary sender restore {}` lists it again", shown(&address));
        }
        Command::Restore { address } => {
            let missing =
                || format!("{} is not ignored\n\nhint: `tributary sender list` shows those that are", shown(&address));
            senders::restore(&env, &caller, &address).await.map_err(|error| hinted(error, missing))?;
            println!("it is listed again");
        }
    }
    Ok(ExitCode::SUCCESS)
}
