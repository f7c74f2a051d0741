//! `tributary queue`: lanes and their items, as the Queues page shows them.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use domain::item::Action;
use domain::shown::relative;
use domain::{Caller, ItemId, ItemState};
use engine::lanes;
use engine::{Config, Env};
use store::queue::{Item, Page, Queue};

use super::{caller, env, table};

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
    /// Count the items of every lane by state.
    List,
    /// List a lane's items.
    Items {
        lane: String,
        /// waiting, working, failed, parked, dead, skipped or cancelled.
        #[arg(long)]
        state: Option<ItemState>,
        #[arg(long, default_value_t = 50)]
        limit: i64,
    },
    /// Show everything about one item.
    Show { lane: String, id: ItemId },
    /// Try an item again now.
    Retry { lane: String, id: ItemId },
    /// Decide that an item need not be done.
    Skip { lane: String, id: ItemId },
    /// Stop an item, even while a worker holds it.
    Cancel { lane: String, id: ItemId },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.tenant.as_deref()).await?;
    let mut conn = env.db.acquire().await?;
    match args.command {
        Command::List => {
            let mut counts = Vec::new();
            for lane in &lanes::ALL {
                counts.push(lane.queue().counts(&mut conn, env.clock.sql(), &caller).await?);
            }
            if args.json {
                println!("{}", serde_json::to_string_pretty(&counts)?);
                return Ok(ExitCode::SUCCESS);
            }
            let row = |counts: &store::queue::Counts| {
                [vec![counts.lane.clone()], ItemState::ALL.map(|state| counts.of(state).to_string()).to_vec()].concat()
            };
            let heading = [vec!["lane"], ItemState::ALL.map(ItemState::as_str).to_vec()].concat();
            table::print(&heading, &counts.iter().map(row).collect::<Vec<_>>());
        }
        Command::Items { lane, state, limit } => {
            let page = Page { state, before: None, limit: limit.clamp(1, 1_000) };
            let items = queue(&lane)?.list(&mut conn, env.clock.sql(), &caller, page).await?;
            if args.json {
                println!("{}", serde_json::to_string_pretty(&items)?);
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
            table::print(&["id", "state", "attempts", "sent", "why"], &items.iter().map(row).collect::<Vec<_>>());
        }
        Command::Show { lane, id } => {
            let item = queue(&lane)?.get(&mut conn, env.clock.sql(), &caller, id).await?;
            println!("{}", serde_json::to_string_pretty(&item.with_context(|| no_item(&lane, id))?)?);
        }
        Command::Retry { lane, id } => act(&env, &caller, &lane, id, Action::Retry).await?,
        Command::Skip { lane, id } => act(&env, &caller, &lane, id, Action::Skip).await?,
        Command::Cancel { lane, id } => act(&env, &caller, &lane, id, Action::Cancel).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn act(env: &Env, caller: &Caller, lane: &str, id: ItemId, action: Action) -> anyhow::Result<()> {
    let mut tx = env.db.begin().await?;
    if !queue(lane)?.act(&mut tx, env.clock.sql(), caller, id, action).await? {
        bail!("{}", no_item(lane, id));
    }
    tx.commit().await?;
    println!("{}: done", action.as_str());
    Ok(())
}

fn queue(lane: &str) -> anyhow::Result<Queue> {
    let known = lanes::ALL.iter().find(|entry| entry.name == lane);
    let names = || lanes::ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    Ok(known.with_context(|| format!("there is no lane {lane:?}\n\nhint: lanes are {}", names()))?.queue().clone())
}

fn no_item(lane: &str, id: ItemId) -> String {
    format!(
        "lane {lane} has no item {id}: it is done, or was sent anew under another id\n\nhint: `tributary queue items {lane}` lists them"
    )
}
