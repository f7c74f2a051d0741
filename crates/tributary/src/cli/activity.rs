//! `tributary activity`: shows activities, and what a person can do about them.

use std::process::ExitCode;

use anyhow::anyhow;
use chrono::{DateTime, Utc};
use clap::{Subcommand, ValueEnum};
use domain::shown::{clipped, relative, shown_lines};
use domain::{ActivityId, ActivityType, Caller, ProcessingStatus};
use engine::activities::written::{self, Written};
use engine::{ActError, Config, Env, activities, clients};
use store::activities::{Activity, Filter, Wanted};

use super::pick::{Choice, Kind, pick};
use super::{Shared, caller, channel, contact, env, hinted, print_json, table};

/// The number of newest activities in which an abbreviated id is looked up.
const NEWEST: i64 = 1_000;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, ValueEnum)]
enum View {
    All,
    /// Without a contact.
    Unmatched,
    Failed,
}

#[derive(Subcommand)]
enum Command {
    /// List the newest activities.
    List {
        /// Which activities.
        #[arg(long, value_enum, default_value = "all")]
        view: View,
        /// Only those of this channel, by name or id.
        #[arg(long)]
        channel: Option<String>,
        /// Only those of this contact, by number, name or address.
        #[arg(long)]
        contact: Option<String>,
        /// Only email, call, sms, meeting, note, task, whatsapp or other.
        #[arg(long = "type")]
        kind: Option<ActivityType>,
        /// Only those with this in their subject, text or addresses.
        #[arg(long)]
        text: Option<String>,
        /// The largest number of rows.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1_000))]
        limit: i64,
    },
    /// Add a note, a task or a meeting. Search finds it within a second.
    Add {
        /// note, task or meeting.
        kind: ActivityType,
        /// Its title.
        title: String,
        /// Its text; `-` reads it from standard input.
        #[arg(long, default_value = "")]
        text: String,
        /// When the meeting is or was, or when the task is due, as 2026-05-03T14:00:00Z.
        #[arg(long, value_name = "TIME")]
        at: Option<DateTime<Utc>>,
        /// The contact that it is about, by number, name or address.
        #[arg(long)]
        contact: Option<String>,
        /// The client that it is about, by name or id.
        #[arg(long)]
        client: Option<String>,
    },
    /// Show one activity with all its data.
    Show {
        /// Its id, or the beginning of it.
        activity: String,
    },
    /// Retry a failed activity.
    Retry {
        /// Its id, or the beginning of it.
        activity: String,
    },
    /// Skip an activity: no agent will process it.
    Skip {
        /// Its id, or the beginning of it.
        activity: String,
    },
    /// Link an activity to a contact.
    Link {
        /// The activity's id, or the beginning of it.
        activity: String,
        /// The contact's number, name or address.
        contact: String,
        /// Also give the activity's address to the contact, and link its other events.
        #[arg(long)]
        add_address: bool,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let now = env.clock.now();
    match args.command {
        Command::List { view, channel, contact, kind, text, limit } => {
            let channel_id = match channel {
                Some(channel) => Some(channel::id_of(&env, &caller, &channel).await?),
                None => None,
            };
            let contact_id = match contact {
                Some(contact) => Some(contact::id_of(&env, &caller, &contact).await?),
                None => None,
            };
            let filter = Filter {
                channel_id,
                contact_id,
                r#type: kind,
                status: matches!(view, View::Failed).then_some(ProcessingStatus::Failed),
                is_unmatched: matches!(view, View::Unmatched),
                text: text.as_deref(),
                ..Filter::default()
            };
            let listed = activities::list(&env, &caller, Wanted { filter, limit, ..Wanted::default() }).await?;
            if args.shared.json {
                print_json(&web::api::activities::Activities::from(listed))?;
                return Ok(ExitCode::SUCCESS);
            }
            let row = |activity: &Activity| {
                let said =
                    |name: &str| activity.raw_data.get(name).and_then(|value| value.as_str()).unwrap_or_default();
                let words = if said("subject").is_empty() { said("content") } else { said("subject") };
                vec![
                    activity.id.to_string(),
                    activity.r#type.to_string(),
                    clipped(activity.party().unwrap_or_default(), 30),
                    clipped(words, 50),
                    activity.contact_id.map_or_else(|| "no contact".into(), |id| format!("contact {id}")),
                    activity.processing_status.to_string(),
                    relative(activity.created_at, now),
                ]
            };
            table::print(
                &["id", "type", "address", "about", "whose", "state", "came"],
                &listed.0.iter().map(row).collect::<Vec<_>>(),
            );
        }
        Command::Add { kind, title, text, at, contact, client } => {
            let text = match text.as_str() {
                "-" => std::io::read_to_string(std::io::stdin())?,
                _ => text,
            };
            let contact_id = match contact {
                Some(contact) => Some(contact::id_of(&env, &caller, &contact).await?),
                None => None,
            };
            let client_id = match client {
                Some(client) => Some(clients::find_one(&env, &caller, &client).await?),
                None => None,
            };
            let new = Written { id: None, r#type: kind, title, text, at, contact_id, client_id };
            let added = written::add(&env, &caller, new).await?;
            if args.shared.json {
                print_json(&web::api::activities::Activity::from(added.activity))?;
            } else {
                println!("{kind} {}", added.activity.id);
            }
        }
        Command::Show { activity } => {
            let id = id_of(&env, &caller, &activity).await?;
            let activity = activities::get(&env, &caller, id).await.map_err(|error| hinted(error, || unknown(id)))?;
            let shape = web::api::activities::Activity::from(activity);
            println!("{}", shown_lines(&serde_json::to_string_pretty(&shape)?));
        }
        Command::Retry { activity } => {
            let id = id_of(&env, &caller, &activity).await?;
            let done = activities::retry(&env, &caller, id).await;
            done.map_err(|error| match error {
                ActError::Conflict(why) => anyhow!(
                    "{id} did not fail: {why}\n\nhint: `tributary activity list --view failed` shows those that did"
                ),
                error => hinted(error, || unknown(id)),
            })?;
            println!("it waits for an agent again");
        }
        Command::Skip { activity } => {
            let id = id_of(&env, &caller, &activity).await?;
            activities::skip(&env, &caller, id).await.map_err(|error| hinted(error, || unknown(id)))?;
            println!("skipped; `tributary activity retry {id}` brings it back");
        }
        Command::Link { activity, contact, add_address } => {
            let id = id_of(&env, &caller, &activity).await?;
            let contact = contact::id_of(&env, &caller, &contact).await?;
            let missing = || format!("there is no activity {id}, or no contact {contact}");
            let linked = activities::link(&env, &caller, id, contact, add_address).await;
            match linked.map_err(|error| hinted(error, missing))?.others {
                0 => println!("linked"),
                others => println!("linked, and {others} more of the same address"),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The activity that is meant, by its id or the beginning of it.
async fn id_of(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<ActivityId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let wanted = Wanted { limit: NEWEST, ..Wanted::default() };
    let (newest, _) = activities::list(env, caller, wanted).await?;
    let choices = newest.into_iter().map(|activity| Choice::new(ActivityId(activity.id), activity.id, []));
    pick(Kind { noun: "activity", plural: "activities", list: "tributary activity list" }, choices.collect(), text)
}

fn unknown(id: ActivityId) -> String {
    format!("there is no activity {id}\n\nhint: `tributary activity list` shows the newest")
}
