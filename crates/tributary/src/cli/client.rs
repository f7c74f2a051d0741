//! `tributary client`: what is known of clients, and which documents say so.

use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;
use domain::ClientId;
use domain::shown::{clipped, relative, shown};
use engine::Config;
use engine::lanes::client_facts::label;
use engine::pull::words::facts::{in_order, in_words, place};
use serde_json::Value;
use store::clients::{self, Cited, Client, Filter};
use uuid::Uuid;

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
    /// List clients by name.
    List {
        /// A part of the name.
        words: Vec<String>,
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
    },
    /// Show what is known of a client, each fact with the documents that it rests on.
    Show {
        /// Its id or its name.
        #[arg(required = true)]
        client: Vec<String>,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.tenant.as_deref()).await?;
    let mut tx = env.db.begin_as(&caller).await?;
    match args.command {
        Command::List { words, limit } => {
            let named = words.join(" ");
            let filter =
                Filter { named: Some(named.as_str()).filter(|named| !named.is_empty()), limit, ..Filter::default() };
            let listed = clients::list(&mut tx, filter).await?;
            if args.json {
                println!("{}", serde_json::to_string_pretty(&listed)?);
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
            let text = client.join(" ");
            let found = find(&mut tx, &text).await?;
            let mut shown_all = Vec::new();
            for (nth, client) in found.iter().enumerate() {
                let cited = clients::cited(&mut tx, &evidence(&client.evidence)).await?;
                if args.json {
                    let mut value = serde_json::to_value(client)?;
                    value["cited"] = serde_json::to_value(&cited)?;
                    shown_all.push(value);
                    continue;
                }
                if nth > 0 {
                    println!();
                }
                print(client, &cited);
            }
            if args.json {
                println!("{}", serde_json::to_string_pretty(&shown_all)?);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// By id; else everybody of exactly that name; else the one whose name has it in it.
async fn find(tx: &mut store::Tx, text: &str) -> anyhow::Result<Vec<Client>> {
    let hint = "hint: `tributary client list` shows them";
    if let Ok(id) = text.parse::<ClientId>() {
        let found = clients::list(tx, Filter { only: Some(id), limit: 1, ..Filter::default() }).await?;
        if found.is_empty() {
            bail!("there is no client {id}\n\n{hint}");
        }
        return Ok(found);
    }
    let found = clients::list(tx, Filter { alike: Some(text), limit: 20, ..Filter::default() }).await?;
    if !found.is_empty() {
        return Ok(found);
    }
    let found = clients::list(tx, Filter { named: Some(text), limit: 20, ..Filter::default() }).await?;
    let mut names: Vec<&str> = found.iter().map(|client| client.client_name.as_str()).collect();
    names.dedup_by_key(|name| name.to_lowercase());
    match names.as_slice() {
        [] => bail!("there is no client {text:?}\n\n{hint}"),
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

/// Every document that any fact rests on.
fn evidence(evidence: &Value) -> Vec<Uuid> {
    let all = evidence.as_object().into_iter().flat_map(|facts| facts.values());
    let mut ids: Vec<Uuid> = all.flat_map(ids).collect();
    ids.sort();
    ids.dedup();
    ids
}

fn ids(cited: &Value) -> Vec<Uuid> {
    cited.as_array().into_iter().flatten().filter_map(|id| id.as_str()?.parse().ok()).collect()
}

fn print(client: &Client, cited: &[Cited]) {
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
        for document in ids(&client.evidence[name]).iter().filter_map(|id| cited.iter().find(|cited| cited.id == *id)) {
            let title = document.title.as_deref().unwrap_or(&document.external_id);
            println!("    {}  {}  {}", document.id, shown(&document.document_type.to_string()), clipped(title, 60));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_document_is_cited_once_and_nonsense_is_passed_over() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let stored = json!({ "open_deals": [b, a], "industry": [a], "broken": "no list", "odd": ["no id", 7] });
        assert_eq!(evidence(&stored), [a, b]);
        assert_eq!(evidence(&json!(null)), Vec::<Uuid>::new());
    }
}
