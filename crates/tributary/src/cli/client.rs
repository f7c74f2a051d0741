//! `tributary client`: shows clients, writes facts about them, and says which records are one client.

use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;
use domain::shown::{clipped, counted, relative, shown};
use domain::{Caller, ClientId};
use engine::clients::decide::{self, Part};
use engine::clients::{self, Summary, WholeClient, curated};
use engine::pull::words::facts::{document_type, in_words, label};
use engine::{Config, Env};
use store::queue::MOST_COUNTED;
use uuid::Uuid;

use super::pick::{Kind, missing};
use super::{Shared, caller, contact, env, hinted, print_json, table};

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
        /// Part of a name, a domain or an e-mail address.
        words: Vec<String>,
        /// The largest number of rows.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
        /// Only clients after this one, by its id: the last one of the page before.
        #[arg(long)]
        after: Option<ClientId>,
    },
    /// Show a client: its facts with their documents, its people and records, and what people decided about it.
    Show {
        /// Its name or id.
        #[arg(required = true)]
        client: Vec<String>,
    },
    /// Say that two clients are one.
    Merge {
        /// The name or id of one.
        client: String,
        /// The name or id of the other.
        other: String,
    },
    /// Say that a contact belongs to a client, whatever its address and its company say. `client undo` or `contact rematch` takes it back.
    AddContact {
        /// The client's name or id.
        client: String,
        /// The contact's number, name, e-mail address or telephone number.
        contact: String,
    },
    /// Say that a record or a contact is not of a client. It is matched with nothing until that is undone.
    Split {
        /// The client's name or id.
        client: String,
        /// The id of the record, as `client show` prints it.
        #[arg(required_unless_present = "contact", conflicts_with = "contact")]
        record: Option<Uuid>,
        /// A contact instead, by number, name or address.
        #[arg(long)]
        contact: Option<String>,
    },
    /// Undo a merge or a split. Everything is as if it had never been said.
    Undo {
        /// The client's name or id.
        client: String,
        /// The id of the decision, as `client show` prints it.
        decision: Uuid,
    },
    /// Write a fact about a client, or correct it. It is found by search, and no record overwrites it.
    Say {
        /// The client's name or id.
        client: String,
        /// `industry`, `summary`, or a name of your own.
        fact: String,
        /// Its text.
        #[arg(required = true)]
        value: Vec<String>,
    },
    /// Withdraw a fact that a person wrote about a client. What records say stays.
    Withdraw {
        /// The client's name or id.
        client: String,
        /// The fact's name, as it was written.
        fact: String,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let told = |whole: &WholeClient| -> anyhow::Result<()> {
        if args.shared.json {
            return print_json(&web::api::clients::WholeClient::new(whole, &config.base_url()));
        }
        print(whole);
        Ok(())
    };
    match args.command {
        Command::List { words, limit, after } => {
            let page = clients::list(&env, &caller, Some(&words.join(" ")), after, limit).await?;
            if args.shared.json {
                print_json(&web::api::clients::Clients::from(page))?;
                return Ok(ExitCode::SUCCESS);
            }
            let now = env.clock.now();
            let row = |client: &Summary| {
                let industry = client.facts.iter().find(|fact| fact.name == "industry");
                vec![
                    client.id.to_string(),
                    clipped(&client.name, 40),
                    clipped(&industry.map(|fact| in_words("industry", &fact.value)).unwrap_or_default(), 30),
                    clipped(&client.sources.join(", "), 40),
                    client.facts.len().to_string(),
                    relative(client.updated_at, now),
                ]
            };
            table::print(
                &["id", "name", "industry", "known from", "facts", "changed"],
                &page.clients.iter().map(row).collect::<Vec<_>>(),
            );
            if page.n_unmatched > 0 {
                eprintln!(
                    "{} records are being matched, and listed when that is done",
                    counted(page.n_unmatched, MOST_COUNTED)
                );
            }
            if let Some(after) = page.next_after {
                eprintln!("{} in all; `--after {after}` lists more", counted(page.n, MOST_COUNTED));
            }
        }
        Command::Show { client } => {
            let id = id_of(&env, &caller, &client.join(" ")).await?;
            told(&clients::whole(&env, &caller, id).await?)?;
        }
        Command::Merge { client, other } => {
            let (one, other) = (id_of(&env, &caller, &client).await?, id_of(&env, &caller, &other).await?);
            let merged = decide::merge(&env, &caller, one, other).await?;
            told(&clients::whole(&env, &caller, merged).await?)?;
        }
        Command::AddContact { client, contact } => {
            let (id, contact) = (id_of(&env, &caller, &client).await?, contact::id_of(&env, &caller, &contact).await?);
            let now = decide::add_contact(&env, &caller, id, contact).await?;
            told(&clients::whole(&env, &caller, now).await?)?;
        }
        Command::Split { client, record, contact } => {
            let id = id_of(&env, &caller, &client).await?;
            let part = match (record, contact) {
                (Some(record), _) => Part::Record(record),
                (None, Some(contact)) => Part::Contact(contact::id_of(&env, &caller, &contact).await?),
                (None, None) => bail!("name a record or a contact"),
            };
            let now = decide::split(&env, &caller, id, part).await?;
            told(&clients::whole(&env, &caller, now.unwrap_or(id)).await?)?;
        }
        Command::Undo { client, decision } => {
            let id = id_of(&env, &caller, &client).await?;
            let now = decide::undo(&env, &caller, id, decision).await?;
            told(&clients::whole(&env, &caller, now).await?)?;
        }
        Command::Say { client, fact, value } => {
            let id = id_of(&env, &caller, &client).await?;
            told(&curated::say(&env, &caller, id, &fact, &value.join(" ")).await?)?;
        }
        Command::Withdraw { client, fact } => {
            let id = id_of(&env, &caller, &client).await?;
            told(&curated::withdraw(&env, &caller, id, &fact).await?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

const CLIENT: Kind = Kind { noun: "client", plural: "clients", list: "tributary client list" };
/// The number of clients among which a name that was typed wrongly is looked for.
const MOST_SUGGESTED_FROM: i64 = 1_000;

/// The client that is meant, by id, else by name, else by part of one. An error if there is none, or several.
pub(super) async fn id_of(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<ClientId> {
    let unknown = || format!("there is no client {text:?}\n\nhint: `tributary client list` shows them");
    let found = clients::find(env, caller, text).await.map_err(|error| hinted(error, unknown))?;
    match found.as_slice() {
        [] => {
            let all = clients::list(env, caller, None, None, MOST_SUGGESTED_FROM).await?.clients;
            Err(missing(CLIENT, text, all.iter().map(|client| client.name.as_str())))
        }
        [one] => Ok(one.id),
        several => {
            let names: Vec<String> =
                several.iter().map(|client| format!("{} ({})", shown(&client.name), client.id)).collect();
            bail!(
                "several clients have {text:?} in their name: {}\n\nhint: give the whole name, or the id",
                names.join("; ")
            )
        }
    }
}

fn print(whole: &WholeClient) {
    println!("{}", shown(&whole.name));
    println!("  id {}", whole.id);
    for fact in &whole.facts {
        println!("\n{}: {}", shown(&label(&fact.name)), shown(&in_words(&fact.name, &fact.value)));
        if let Some(said) = &fact.said {
            println!("    written by {}", shown(&said.by));
        }
        for document in whole.documents_of(fact) {
            let kind = document_type(&document.document_type);
            let title = document.title.as_deref().unwrap_or(&kind);
            println!("    {}  {}  {}", document.id, shown(&kind), clipped(title, 60));
        }
        for other in &fact.also {
            let who = other.said.as_ref().map_or_else(|| other.sources.join(", "), |said| said.by.clone());
            println!("    {} says: {}", shown(&who), shown(&in_words(&other.name, &other.value)));
        }
    }
    println!("\nRecords");
    for record in whole.records.iter().chain(&whole.people).map(web::api::clients::RecordOfClient::from) {
        println!("    {}", shown(&record.in_a_line()));
    }
    for contact in &whole.contacts {
        let why = clients::why(Some(&contact.matched_by)).unwrap_or_default();
        println!("    contact {}  {}  {why}", contact.id, shown(&contact.called()));
    }
    for decided in &whole.decisions {
        let decision = &decided.decision;
        println!("\nDecision {}: {}, said by {}", decision.id, shown(&decided.in_words()), shown(&decision.said_by));
    }
}
