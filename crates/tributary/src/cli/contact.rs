//! `tributary contact`: the people that events come from.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use domain::ContactId;
use domain::shown::{clipped, shown};
use engine::Config;
use store::contacts::{self, Contact, NewContact, Wanted};

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
    /// List contacts, newest first.
    List {
        /// A part of a name, a company or an address.
        text: Option<String>,
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
    },
    /// Add a contact, and link unmatched activities of its addresses to it.
    Add {
        #[arg(long)]
        email: Option<String>,
        #[arg(long)]
        phone: Option<String>,
        #[arg(long)]
        first_name: Option<String>,
        #[arg(long)]
        last_name: Option<String>,
        #[arg(long)]
        company: Option<String>,
    },
    /// Show a contact and every address by which it is recognised.
    Show { id: ContactId },
    /// Import a CSV file with a heading: email, phone, first_name, last_name (or name), company, tags. Known contacts are completed, not
    /// overwritten.
    Import {
        /// A file, or `-` for stdin.
        file: PathBuf,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.tenant.as_deref()).await?;
    let tenant_id = caller.tenant_id;
    match args.command {
        Command::List { text, limit } => {
            let mut tx = env.db.begin_as(&caller).await?;
            let wanted = Wanted { text: text.as_deref(), before: None, limit };
            let listed = contacts::list(&mut tx, tenant_id, &wanted).await?;
            if args.json {
                let listed: Vec<web::Contact> = listed.into_iter().map(Into::into).collect();
                println!("{}", serde_json::to_string_pretty(&listed)?);
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
                &listed.iter().map(row).collect::<Vec<_>>(),
            );
        }
        Command::Add { email, phone, first_name, last_name, company } => {
            let new =
                NewContact { email, phone_number: phone, first_name, last_name, company, ..NewContact::default() };
            let new = engine::contacts::checked(new, config.phone_region).map_err(anyhow::Error::msg)?;
            println!("contact {}", engine::contacts::create(&env, tenant_id, &new).await?);
        }
        Command::Show { id } => {
            let mut tx = env.db.begin_as(&caller).await?;
            let contact = contacts::get(&mut tx, tenant_id, id)
                .await?
                .with_context(|| format!("there is no contact {id}\n\nhint: `tributary contact list` shows them"))?;
            let addresses = contacts::addresses(&mut tx, tenant_id, id).await?;
            if args.json {
                let mut value = serde_json::to_value(web::Contact::from(contact))?;
                value["addresses"] = serde_json::to_value(&addresses)?;
                println!("{}", serde_json::to_string_pretty(&value)?);
                return Ok(ExitCode::SUCCESS);
            }
            println!("{}", shown(&contact.called()));
            for address in addresses {
                println!("  {}", shown(&address));
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
            let report = engine::contacts::import(&env, tenant_id, &table).await?;
            if args.json {
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
                println!("{} events that were nobody's are somebody's now", report.linked);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
