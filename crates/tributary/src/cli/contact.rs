//! `tributary contact`: the people that events come from.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use domain::shown::{clipped, shown};
use domain::{Caller, ContactId};
use engine::clients::decide;
use engine::contacts::corrected::{self, Change};
use engine::contacts::merges;
use engine::forgetting::counted as counted_in;
use engine::{Config, Env, clients, contacts};
use store::contacts::{Contact, NewContact};
use web::api::contacts::ContactInFull;
use web::api::forget::Forgotten;

use super::pick::{Choice, Kind, pick};
use super::{Consent, Shared, caller, env, hinted, print_json, table};

/// The number of newest contacts in which a name is looked up.
const NEWEST: i64 = 10_000;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

/// A contact's own fields.
#[derive(clap::Args)]
struct Fields {
    /// An e-mail address.
    #[arg(long)]
    email: Option<String>,
    /// A telephone number, with its country code.
    #[arg(long)]
    phone: Option<String>,
    /// The first name.
    #[arg(long)]
    first_name: Option<String>,
    /// The last name.
    #[arg(long)]
    last_name: Option<String>,
    /// The company.
    #[arg(long)]
    company: Option<String>,
}

#[derive(Subcommand)]
enum Command {
    /// List contacts, newest first.
    List {
        /// Part of a name, a company or an address.
        text: Option<String>,
        /// The largest number of rows.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
    },
    /// Add a contact, and link unmatched activities of its addresses to it.
    Add {
        #[command(flatten)]
        fields: Fields,
    },
    /// Show a contact and every address by which it is recognised.
    Show {
        /// Its number, name, e-mail address or telephone number.
        contact: String,
    },
    /// Import a CSV file with a header row: email, phone, first_name, last_name (or name), company, tags. Known contacts are completed, not
    /// overwritten.
    Import {
        /// A file, or `-` for stdin.
        file: PathBuf,
    },
    /// Change a contact. An empty text removes a field.
    Set {
        /// Its number, name, e-mail address or telephone number.
        contact: String,
        #[command(flatten)]
        fields: Fields,
        /// Tags, with commas between them, instead of those that it has.
        #[arg(long, value_delimiter = ',')]
        tags: Option<Vec<String>>,
        /// Another address by which it is recognised from now on. Can be given several times.
        #[arg(long, value_name = "ADDRESS")]
        add_address: Vec<String>,
        /// An added address by which it is not recognised any more. Can be given several times.
        #[arg(long, value_name = "ADDRESS")]
        remove_address: Vec<String>,
    },
    /// Make another contact part of this one: its addresses, activities and documents are this one's from now on.
    Merge {
        /// The contact that stays: its number, name, e-mail address or telephone number.
        contact: String,
        /// The contact that becomes part of it.
        other: String,
    },
    /// Undo the last merge into a contact.
    Unmerge {
        /// Its number, name, e-mail address or telephone number.
        contact: String,
    },
    /// Undo what people said about the client of a contact: its address and its company decide again.
    Rematch {
        /// Its number, name, e-mail address or telephone number.
        contact: String,
    },
    /// Delete a contact, and keep its activities and documents, which have no contact afterwards. Asks first.
    Delete {
        /// Its number, name, e-mail address or telephone number.
        contact: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Delete a contact for good: its name, addresses, activities and files, the documents made from them, and facts that rest on nothing else.
    /// Shows how much that is, and asks.
    Forget {
        /// Its number, name, e-mail address or telephone number.
        contact: String,
        #[command(flatten)]
        consent: Consent,
    },
}

/// The contact that is meant, by its number, its name or an address.
pub(super) async fn id_of(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<ContactId> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(id) = text.parse().ok().filter(|_| is_number)
        && contacts::get(env, caller, id).await.is_ok()
    {
        return Ok(id);
    }
    let (mut listed, more) = contacts::list(env, caller, Some(text.trim()), None, NEWEST).await?;
    anyhow::ensure!(more.is_none(), "too many contacts match {text:?}\n\nhint: give the contact's number");
    if listed.is_empty() {
        (listed, _) = contacts::list(env, caller, None, None, NEWEST).await?; // those that may be meant instead
    }
    let choices = listed.into_iter().map(|contact| {
        let names = [Some(contact.called()), contact.email, contact.phone_number];
        Choice::new(ContactId(contact.id), contact.id, names)
    });
    let kind = Kind { noun: "contact", plural: "contacts", list: "tributary contact list" };
    pick(kind, choices.collect(), text)
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    match args.command {
        Command::List { text, limit } => {
            let listed = contacts::list(&env, &caller, text.as_deref(), None, limit).await?;
            if args.shared.json {
                print_json(&web::api::contacts::Contacts::from(listed))?;
                return Ok(ExitCode::SUCCESS);
            }
            let row = |contact: &Contact| {
                let text = |field: &Option<String>| clipped(field.as_deref().unwrap_or_default(), 40);
                vec![
                    contact.id.to_string(),
                    clipped(&contact.called(), 40),
                    text(&contact.email),
                    text(&contact.phone_number),
                    text(&contact.company),
                    clipped(&contact.tags.join(", "), 40),
                ]
            };
            table::print(
                &["id", "name", "email", "phone", "company", "tags"],
                &listed.0.iter().map(row).collect::<Vec<_>>(),
            );
        }
        Command::Add { fields: Fields { email, phone: phone_number, first_name, last_name, company } } => {
            let new = NewContact { email, phone_number, first_name, last_name, company, ..NewContact::default() };
            let id = contacts::create(&env, &caller, new).await?;
            if args.shared.json {
                print_json(&web::api::contacts::Contact::from(contacts::get(&env, &caller, id).await?))?;
            } else {
                println!("contact {id}");
            }
        }
        Command::Show { contact } => {
            let id = id_of(&env, &caller, &contact).await?;
            let missing = || format!("there is no contact {id}\n\nhint: `tributary contact list` shows them");
            let contact = contacts::get(&env, &caller, id).await.map_err(|error| hinted(error, missing))?;
            if args.shared.json {
                print_json(&ContactInFull::load(&env, &caller, id).await?)?;
                return Ok(ExitCode::SUCCESS);
            }
            println!("{}", shown(&contact.called()));
            for address in contacts::addresses(&env, &caller, id).await? {
                println!("  {}", shown(&address));
            }
            let belongs = clients::of_contact(&env, &caller, id).await?;
            if let Some(of) = &belongs.client {
                let why = clients::why(Some(&of.matched_by)).unwrap_or_default();
                println!("  belongs to {} ({}), {why}", shown(&of.client_name), of.client_id);
            }
            if let Some(said) = &belongs.said {
                println!("  {}, said by {}", shown(&said.in_words()), shown(&said.decision.said_by));
            }
            for merge in merges::list(&env, &caller, id).await? {
                println!("  with {}, merged by {}", shown(&merge.merged.contact.called()), shown(&merge.merged_by));
            }
        }
        Command::Set {
            contact,
            fields: Fields { email, phone: phone_number, first_name, last_name, company },
            tags,
            add_address: add_addresses,
            remove_address: remove_addresses,
        } => {
            let id = id_of(&env, &caller, &contact).await?;
            let change =
                Change { email, phone_number, first_name, last_name, company, tags, add_addresses, remove_addresses };
            let changed = corrected::change(&env, &caller, id, change).await?;
            if args.shared.json {
                print_json(&ContactInFull::load(&env, &caller, id).await?)?;
            } else {
                println!("contact {id} is {} now", shown(&changed.called()));
            }
        }
        Command::Merge { contact, other } => {
            let (id, other) = (id_of(&env, &caller, &contact).await?, id_of(&env, &caller, &other).await?);
            let merged = merges::merge(&env, &caller, id, other).await?;
            if args.shared.json {
                print_json(&ContactInFull::load(&env, &caller, id).await?)?;
            } else {
                println!(
                    "contact {other} is part of {} ({id}) now; `tributary contact unmerge {id}` undoes it",
                    shown(&merged.called())
                );
            }
        }
        Command::Unmerge { contact } => {
            let id = id_of(&env, &caller, &contact).await?;
            let last = merges::list(&env, &caller, id).await?.into_iter().next();
            let last = last.with_context(|| {
                format!("no contact was merged into {id}\n\nhint: `tributary contact show {id}` lists those that were")
            })?;
            let back = merges::undo(&env, &caller, id, last.id).await?;
            if args.shared.json {
                print_json(&ContactInFull::load(&env, &caller, ContactId(back.id)).await?)?;
            } else {
                println!("contact {} ({}) is there again", back.id, shown(&back.called()));
            }
        }
        Command::Rematch { contact } => {
            let id = id_of(&env, &caller, &contact).await?;
            let unsaid = || {
                format!("nobody said to which client contact {id} belongs\n\nhint: `tributary client add-contact` does")
            };
            decide::undo_contact(&env, &caller, id).await.map_err(|error| hinted(error, unsaid))?;
            match clients::of_contact(&env, &caller, id).await?.client {
                _ if args.shared.json => print_json(&ContactInFull::load(&env, &caller, id).await?)?,
                Some(of) => println!("contact {id} belongs to {} again", shown(&of.client_name)),
                None => println!("contact {id} belongs to no client now"),
            }
        }
        Command::Delete { contact, consent } => {
            let id = id_of(&env, &caller, &contact).await?;
            let contact = contacts::get(&env, &caller, id).await?;
            eprintln!(
                "contact {} ({id}) will be deleted, and this cannot be undone. Its activities and documents stay.",
                shown(&contact.called())
            );
            if !consent.given("Delete it?")? {
                return Ok(ExitCode::FAILURE);
            }
            corrected::delete(&env, &caller, id).await?;
            println!("deleted");
        }
        Command::Forget { contact, consent } => {
            let id = id_of(&env, &caller, &contact).await?;
            let contact = contacts::get(&env, &caller, id).await?;
            let missing = || format!("there is no contact {id}\n\nhint: `tributary contact list` shows them");
            let counted = contacts::count(&env, &caller, id).await.map_err(|error| hinted(error, missing))?;
            eprintln!(
                "contact {} ({id}) will be forgotten, and this cannot be undone.\nGoes with it: {}",
                shown(&contact.called()),
                counted_in(&counted)
            );
            if !consent.given("Forget all of it?")? {
                return Ok(ExitCode::FAILURE);
            }
            let going = contacts::forget(&env, &caller, id).await.map_err(|error| hinted(error, missing))?;
            if args.shared.json {
                print_json(&Forgotten::from(going))?;
            } else {
                println!(
                    "its name and addresses are gone; a worker removes the rest step by step\n`tributary forgotten` shows how far it is"
                );
            }
        }
        Command::Import { file } => {
            let table = match file.to_str() {
                Some("-") => {
                    let mut all = Vec::new();
                    std::io::stdin().read_to_end(&mut all)?;
                    all
                }
                _ => std::fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?,
            };
            let report = contacts::import(&env, caller.tenant_id, &table).await?;
            if args.shared.json {
                println!("{}", serde_json::to_string_pretty(&report)?);
                return Ok(ExitCode::SUCCESS);
            }
            for (line, why) in &report.left_out {
                eprintln!("line {line} was left out: {}", shown(why));
            }
            println!(
                "{} new, {} completed, {} as they were, {} left out",
                report.created,
                report.updated,
                report.unchanged,
                report.left_out.len()
            );
            if report.linked > 0 {
                println!("linked {} events that had no contact", report.linked);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
