//! `tributary queue`: shows lanes and their items, like the Queues page.

use std::process::ExitCode;

use clap::Subcommand;
use domain::item::Action;
use domain::shown::{counted, relative};
use domain::{Caller, ItemId, ItemState};
use engine::work::LaneEntry;
use engine::{ActError, Config, Env, items, lanes};
use store::queue::{Item, MOST_COUNTED, Page};
use web::api::queues::{self, Acted, Items, Queues};

use super::pick::{Kind, missing};
use super::{Shared, caller, env, hinted, print_json, table};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Count the items of every lane by state.
    List,
    /// List a lane's items.
    Items {
        #[arg(help = LANE_MEANT)]
        lane: String,
        /// waiting, working, failed, parked, dead, skipped or cancelled.
        #[arg(long)]
        state: Option<ItemState>,
        /// The largest number of rows.
        #[arg(long, default_value_t = 50)]
        limit: i64,
    },
    /// Show everything about one item.
    Show {
        #[arg(help = LANE_MEANT)]
        lane: String,
        #[arg(help = ITEM_MEANT)]
        id: ItemId,
    },
    /// Retry an item now.
    Retry {
        #[arg(help = LANE_MEANT)]
        lane: String,
        #[arg(help = ITEM_MEANT)]
        id: ItemId,
    },
    /// Skip an item: it is not needed.
    Skip {
        #[arg(help = LANE_MEANT)]
        lane: String,
        #[arg(help = ITEM_MEANT)]
        id: ItemId,
    },
    /// Stop an item, even while a worker holds it.
    Cancel {
        #[arg(help = LANE_MEANT)]
        lane: String,
        #[arg(help = ITEM_MEANT)]
        id: ItemId,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    match args.command {
        Command::List => {
            let counts = items::counts(&env, &caller).await?;
            if args.shared.json {
                print_json(&Queues::from(counts))?;
                return Ok(ExitCode::SUCCESS);
            }
            let row = |counts: &store::queue::Counts| {
                [
                    vec![counts.lane.clone()],
                    ItemState::ALL.map(|state| counted(counts.of(state), MOST_COUNTED)).to_vec(),
                ]
                .concat()
            };
            let heading = [vec!["lane"], ItemState::ALL.map(ItemState::as_str).to_vec()].concat();
            table::print(&heading, &counts.iter().map(row).collect::<Vec<_>>());
        }
        Command::Items { lane, state, limit } => {
            let page = Page { state, before: None, limit: limit.clamp(1, 1_000) };
            let listed = items::list(&env, &caller, find(&lane)?, page).await?;
            if args.shared.json {
                print_json(&Items::from(listed))?;
                return Ok(ExitCode::SUCCESS);
            }
            let now = env.clock.now();
            let row = |item: &Item| {
                let why = item.error.as_deref().or(item.reason.as_deref()).unwrap_or_default();
                vec![
                    item.id.clone(),
                    item.state.to_string(),
                    item.attempts.to_string(),
                    relative(item.enqueued_at, now),
                    why.replace('\n', " "),
                ]
            };
            table::print(&["id", "state", "attempts", "sent", "why"], &listed.0.iter().map(row).collect::<Vec<_>>());
        }
        Command::Show { lane, id } => {
            let item = items::get(&env, &caller, find(&lane)?, id).await;
            let item = item.map_err(|error| hinted(error, || no_item(&lane, id)))?;
            print_json(&queues::Item::from(item))?;
        }
        Command::Retry { lane, id } => act(&env, &caller, &lane, id, Action::Retry, args.shared.json).await?,
        Command::Skip { lane, id } => act(&env, &caller, &lane, id, Action::Skip, args.shared.json).await?,
        Command::Cancel { lane, id } => act(&env, &caller, &lane, id, Action::Cancel, args.shared.json).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn act(env: &Env, caller: &Caller, lane: &str, id: ItemId, action: Action, is_json: bool) -> anyhow::Result<()> {
    let acted = items::act(env, caller, find(lane)?, id, action).await;
    let acted = acted.map_err(|error| hinted(error, || no_item(lane, id)))?;
    if is_json {
        return print_json(&Acted::new(id.to_string(), acted));
    }
    println!("{}: done", action.as_str());
    Ok(())
}

/// Help of arguments.
const LANE_MEANT: &str = "The lane's name; `tributary queue list` shows them";
const ITEM_MEANT: &str = "The item's id";

const LANE: Kind = Kind { noun: "lane", plural: "lanes", list: "tributary queue list" };

fn find(lane: &str) -> anyhow::Result<&'static LaneEntry> {
    let names = || lanes::ALL.iter().map(|entry| entry.name);
    items::lane(lane).map_err(|error| match error {
        ActError::NotFound(_) => missing(LANE, lane, names()),
        error => error.into(),
    })
}

fn no_item(lane: &str, id: ItemId) -> String {
    format!(
        "lane {lane} has no item {id}: it is done, or was sent anew under another id\n\nhint: `tributary queue items {lane}` lists them"
    )
}
