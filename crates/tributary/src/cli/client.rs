//! `tributary client`: shows facts about clients, and their documents.

use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;
use domain::shown::{clipped, relative, shown};
use domain::{Caller, ClientId};
use engine::clients::{self, WholeClient};
use engine::lanes::client_facts::label;
use engine::pull::words::facts::{in_order, in_words, place};
use engine::{Config, Env};
use store::clients::Client;

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
    /// List clients by name.
    List {
        /// Part of the name.
        words: Vec<String>,
        /// The largest number of rows.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
    },
    /// Show the facts about a client, each with its documents.
    Show {
        /// Its name or id.
        #[arg(required = true)]
        client: Vec<String>,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    match args.command {
        Command::List { words, limit } => {
            let listed = clients::list(&env, &caller, Some(&words.join(" ")), false, limit).await?;
            if args.shared.json {
                print_json(&web::api::clients::Clients::from(listed))?;
                return Ok(ExitCode::SUCCESS);
            }
            let now = env.clock.now();
            let row = |client: &Client| {
                vec![
                    client.id.to_string(),
                    clipped(&client.client_name, 40),
                    clipped(client.industry.as_deref().unwrap_or_default(), 30),
                    clipped(client.source_name.as_deref().unwrap_or("by hand"), 30),
                    client.key_facts.as_object().map_or(0, serde_json::Map::len).to_string(),
                    relative(client.updated_at, now),
                ]
            };
            table::print(
                &["id", "name", "industry", "source", "facts", "changed"],
                &listed.iter().map(row).collect::<Vec<_>>(),
            );
        }
        Command::Show { client } => {
            let found = find(&env, &caller, &client.join(" ")).await?;
            if args.shared.json {
                // The others of the same name are in it.
                let first = clients::whole(&env, &caller, ClientId(found[0].id)).await?;
                print_json(&web::api::clients::WholeClient::new(first, &config.base_url()))?;
                return Ok(ExitCode::SUCCESS);
            }
            for (nth, client) in found.iter().enumerate() {
                if nth > 0 {
                    println!();
                }
                print(&clients::whole(&env, &caller, ClientId(client.id)).await?);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

const CLIENT: Kind = Kind { noun: "client", plural: "clients", list: "tributary client list" };
/// The number of clients among which a name that was typed wrongly is looked for.
const MOST_SUGGESTED_FROM: i64 = 1_000;

/// The id of the client that is meant, by id or name. Of several records of one name the first, which the others belong to.
pub(super) async fn id_of(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<ClientId> {
    let found = find(env, caller, text).await?;
    found.first().map(|client| ClientId(client.id)).ok_or_else(|| missing(CLIENT, text, []))
}

/// Finds clients by id; else all of exactly that name; else the one whose name contains the text. An error if there is none.
async fn find(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<Vec<Client>> {
    if let Ok(id) = text.parse::<ClientId>() {
        let found = clients::whole(env, caller, id).await;
        let missing = || format!("there is no client {id}\n\nhint: `tributary client list` shows them");
        return Ok(vec![found.map_err(|error| hinted(error, missing))?.client]);
    }
    let found = clients::named(env, caller, text, 20).await?;
    if !found.is_empty() {
        return Ok(found);
    }
    let found = clients::list(env, caller, Some(text), false, 20).await?;
    let mut names: Vec<&str> = found.iter().map(|client| client.client_name.as_str()).collect();
    names.dedup_by_key(|name| name.to_lowercase());
    match names.as_slice() {
        [] => {
            let all = clients::list(env, caller, None, true, MOST_SUGGESTED_FROM).await?;
            Err(missing(CLIENT, text, all.iter().map(|client| client.client_name.as_str())))
        }
        [_] => Ok(found),
        several => {
            let names: Vec<String> = several.iter().map(|name| shown(name)).collect();
            bail!(
                "several clients have {text:?} in their name: {}\n\nhint: give the whole name, or the id",
                names.join("; ")
            )
        }
    }
}

fn print(whole: &WholeClient) {
    let client = &whole.client;
    println!("{}", shown(&client.client_name));
    println!("  id {}", client.id);
    match (&client.source_name, &client.external_id) {
        (Some(source), Some(name)) => println!("  from {}, {}", shown(source), shown(name)),
        _ => println!("  kept by hand"),
    }
    let told = [("industry", &client.industry), ("summary", &client.summary)];
    let told = told.into_iter().filter_map(|(name, text)| Some((name, text.clone()?)));
    let derived = in_order(&client.key_facts).into_iter().map(|(name, value)| (name, in_words(name, value)));
    let mut all: Vec<(&str, String)> = told.chain(derived).collect();
    all.sort_by_key(|(name, _)| place(name));
    for (name, value) in all {
        println!("\n{}: {}", shown(&label(name)), shown(&value));
        for document in whole.documents_of(name) {
            let title = document.title.as_deref().unwrap_or(&document.external_id);
            println!("    {}  {}  {}", document.id, shown(&document.document_type.to_string()), clipped(title, 60));
        }
    }
}
