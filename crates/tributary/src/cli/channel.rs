//! `tributary channel`: URLs for other people's webhooks, and letters of mailboxes as events.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Subcommand;
use domain::shown::{clipped, relative, shown};
use domain::{Caller, ChannelId, PersonId, Secret};
use engine::channels::{self, MOST_RETIRING_HOURS, NewChannel, Opened, RETIRING_HOURS, Refused, Rotation};
use engine::intake::providers;
use engine::mail;
use engine::mail::channel::{NewMailChannel, Standing, USUAL_QUERY};
use engine::{ActError, Config, Env};
use store::channels::{Channel, ChannelChange, Settings};
use web::api::channels::{Channel as ListedChannel, Channels, MadeChannel};

use super::pick::{Choice, Kind, pick};
use super::{Consent, Shared, caller, env, person, source, table};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add a channel; prints its URL, its secrets, and what to do next.
    Add {
        /// A name that no other channel has, such as the sender's.
        name: String,
        #[arg(long, default_value = providers::DEFAULT, help = provider_help())]
        provider: String,
        /// The secret that the sender signs with, if it has its own. `-` reads it from the first line of stdin.
        #[arg(long, env = "CHANNEL_SECRET", hide_env_values = true)]
        secret: Option<Secret>,
        /// The most verified requests per minute, or `none`. Default: the provider's usual limit (100 for generic).
        #[arg(long, value_parser = max_per_minute)]
        max_per_minute: Option<Limit>,
        /// The owner of its events, by e-mail address, name or number. Without, they are everyone's.
        #[arg(long)]
        owner: Option<String>,
        /// Create a contact for every unknown address.
        #[arg(long)]
        auto_create_contacts: bool,
        /// For a provider that is known by its address: a network that its requests come from, instead of those that it publishes; may be
        /// repeated.
        #[arg(long, value_name = "NETWORK")]
        range: Vec<String>,
        /// Accept requests from anywhere and without user and password. The URL alone is the secret.
        #[arg(long)]
        no_require_ip: bool,
        /// A Gmail source, by name or id, whose new letters are the channel's events. Such a channel has no URL and no secrets.
        #[arg(long, value_name = "SOURCE", conflicts_with_all = ["provider", "max_per_minute", "range", "no_require_ip"])]
        mailbox: Option<String>,
        /// With `--mailbox`: the letters that are events, in the words of Gmail's search. Default: `in:inbox is:unread`.
        #[arg(long, requires = "mailbox")]
        query: Option<String>,
    },
    /// List the channels of a tenant, without their secrets.
    List,
    /// Print a channel's URL and secrets again, and its latest refusals; of a channel on a mailbox its mailbox and its query.
    Show {
        #[arg(help = MEANT)]
        channel: String,
    },
    /// Change a channel: its name, its owner, its limit.
    Set {
        #[arg(help = MEANT)]
        channel: String,
        /// A new name, which no other channel has.
        #[arg(long)]
        name: Option<String>,
        /// The owner of its events from now on, by e-mail address, name or number; `none`: they are everyone's.
        #[arg(long)]
        owner: Option<String>,
        /// The most verified requests per minute, or `none`.
        #[arg(long, value_parser = max_per_minute)]
        max_per_minute: Option<Limit>,
        /// Whether to create a contact for every unknown address.
        #[arg(long, value_name = "true|false")]
        auto_create_contacts: Option<bool>,
        /// Of a channel on a mailbox: the letters that are its events from now on, in the words of Gmail's search.
        #[arg(long)]
        query: Option<String>,
    },
    /// Make new secrets. The old ones stay valid for another day.
    Rotate {
        #[arg(help = MEANT)]
        channel: String,
        /// The sender's own new secret. `-` reads it from the first line of stdin.
        #[arg(long, env = "CHANNEL_SECRET", hide_env_values = true)]
        secret: Option<Secret>,
        /// Also make a new URL, after asking: the old one is refused at once.
        #[arg(long)]
        url: bool,
        #[command(flatten)]
        consent: Consent,
        /// How many hours the old secrets stay valid.
        #[arg(long, default_value_t = RETIRING_HOURS, value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_RETIRING_HOURS)))]
        keep_hours: u32,
    },
    /// Add a shared key that the provider signs with. Without a secret, remove it.
    SharedKey {
        #[arg(help = MEANT)]
        channel: String,
        /// The key's id at the provider.
        key: String,
        /// Its secret. `-` reads it from the first line of stdin.
        #[arg(long)]
        secret: Option<Secret>,
    },
    /// Accept webhooks again.
    Enable {
        #[arg(help = MEANT)]
        channel: String,
    },
    /// Refuse webhooks until enabled again.
    Disable {
        #[arg(help = MEANT)]
        channel: String,
    },
    /// Delete a channel, after asking. Its senders are refused from then on; its activities stay.
    Delete {
        #[arg(help = MEANT)]
        channel: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Send a test event to the running server, signed as the channel's provider would sign it.
    SendTest {
        #[arg(help = MEANT)]
        channel: String,
    },
}

/// The channel that is meant, by name or id.
async fn find(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<(ChannelId, String)> {
    let listed = channels::list(env, caller).await?.into_iter();
    let choices = listed.map(|channel| {
        let names = [Some(channel.name.clone())];
        Choice::new((ChannelId(channel.id), channel.name), channel.id, names)
    });
    pick(CHANNEL, choices.collect(), text)
}

/// The id of the channel that is meant.
pub(super) async fn id_of(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<ChannelId> {
    Ok(find(env, caller, text).await?.0)
}

/// Help of an argument.
const MEANT: &str = "The channel's name or id";
const CHANNEL: Kind = Kind { noun: "channel", plural: "channels", list: "tributary channel list" };

fn provider_help() -> String {
    format!("The sender's provider: {}", providers::ChannelProviders::default().codes())
}

/// The secret itself, or the first line of stdin.
fn read_secret(given: Option<Secret>) -> anyhow::Result<Option<Secret>> {
    match given {
        Some(dash) if dash.reveal() == "-" => {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line)?;
            Ok(Some(Secret::new(line.trim())))
        }
        given => Ok(given.map(|secret| Secret::new(secret.reveal().trim()))),
    }
}

#[derive(Clone, Copy)]
struct Limit(Option<i32>);

fn max_per_minute(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        number => match number.parse() {
            Ok(most @ 1..) => Ok(Limit(Some(most))),
            _ => Err("a number of requests, at least 1, or `none`".into()),
        },
    }
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let (env, json) = (env(&config).await?, args.shared.json);
    let caller = &caller(&env, args.shared.tenant.as_deref()).await?;
    match args.command {
        Command::Add {
            name,
            provider,
            secret,
            max_per_minute,
            owner,
            auto_create_contacts,
            range,
            no_require_ip,
            mailbox,
            query,
        } => {
            let person_id = match owner {
                Some(owner) => Some(PersonId(person::find(&env, caller, &owner).await?.id)),
                None => None,
            };
            if let Some(mailbox) = mailbox {
                let mailbox = source::find(&env, caller, &mailbox).await?;
                let new = NewMailChannel { name, query, person_id, auto_create_contacts };
                let id = mail::channel::add(&env, caller, mailbox, new).await?;
                print_standing(mail::channel::get(&env, caller, id).await?, json)?;
                eprintln!("\nEach letter that comes from now on and fits the query is an activity.");
                return Ok(ExitCode::SUCCESS);
            }
            let secret = read_secret(secret)?;
            let lacks_secret = secret.is_none() && env.channel_providers.find(&provider)?.needs_secret();
            let new = NewChannel {
                name,
                provider,
                max_per_minute: max_per_minute.map(|Limit(most)| most),
                secret,
                person_id,
                auto_create_contacts,
                settings: Settings {
                    require_ip: !no_require_ip,
                    ranges: (!range.is_empty()).then_some(range),
                    ..Settings::default()
                },
            };
            let added = channels::add(&env, caller, new).await;
            let added = added.map_err(|error| match error {
                ActError::Invalid(what) if lacks_secret => {
                    anyhow!("{what}\n\nhint: give it with `--secret -` and paste it, or in CHANNEL_SECRET")
                }
                error => error.into(),
            });
            print(added?, json)?;
        }
        Command::List => list(&env, caller, json).await?,
        Command::Show { channel } => {
            let id = id_of(&env, caller, &channel).await?;
            let standing = mail::channel::get(&env, caller, id).await.map_err(hinted)?;
            if standing.is_on_mailbox() {
                print_standing(standing, json)?;
                return Ok(ExitCode::SUCCESS);
            }
            print(channels::open(&env, caller, id).await.map_err(hinted)?, json)?;
            let refusals = channels::refusals(&env, caller, id, 10).await?;
            if !json && !refusals.is_empty() {
                print_refusals(&env, &refusals);
            }
        }
        Command::Set { channel, name: new_name, owner, max_per_minute, auto_create_contacts, query } => {
            let (id, _) = find(&env, caller, &channel).await?;
            let person_id = match owner.as_deref() {
                None => None,
                Some("none") => Some(None),
                Some(owner) => Some(Some(PersonId(person::find(&env, caller, owner).await?.id))),
            };
            let max_per_minute = max_per_minute.map(|Limit(most)| most);
            let change = ChannelChange {
                name: new_name,
                max_per_minute,
                person_id,
                auto_create_contacts,
                settings: None,
                query,
            };
            channels::change(&env, caller, id, change).await.map_err(hinted)?;
            println!("changed; servers know within 5 s");
        }
        Command::Rotate { channel, secret, url, consent, keep_hours } => {
            let (id, name) = find(&env, caller, &channel).await?;
            if url
                && !consent
                    .given(&format!("The present URL of {} is refused at once. Make a new one?", shown(&name)))?
            {
                return Ok(ExitCode::FAILURE);
            }
            let rotation = Rotation { secret: read_secret(secret)?, is_url_too: url, keep_hours: Some(keep_hours) };
            print(channels::rotate(&env, caller, id, rotation).await.map_err(hinted)?, json)?;
            eprintln!("The secrets before stay valid for another {keep_hours} h.");
        }
        Command::SharedKey { channel, key, secret } => {
            let id = id_of(&env, caller, &channel).await?;
            let secret = read_secret(secret)?;
            let done = if secret.is_some() { "added" } else { "removed" };
            channels::set_shared_key(&env, caller, id, &key, secret).await.map_err(hinted)?;
            println!("{done}; servers know within 5 s");
        }
        Command::Enable { channel } => {
            let id = id_of(&env, caller, &channel).await?;
            channels::set_active(&env, caller, id, true).await.map_err(hinted)?;
            println!("enabled; servers take its events within 5 s");
        }
        Command::Disable { channel } => {
            let id = id_of(&env, caller, &channel).await?;
            channels::set_active(&env, caller, id, false).await.map_err(hinted)?;
            println!("disabled; servers take no events of it within 5 s");
        }
        Command::Delete { channel, consent } => {
            let (id, name) = find(&env, caller, &channel).await?;
            if !consent
                .given(&format!("Delete channel {} ({id})? Its senders are refused from then on.", shown(&name)))?
            {
                return Ok(ExitCode::FAILURE);
            }
            channels::delete(&env, caller, id).await.map_err(hinted)?;
            println!("deleted; its activities stay");
        }
        Command::SendTest { channel } => {
            let id = id_of(&env, caller, &channel).await?;
            return send_test(&env, caller, id).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn hinted(error: ActError) -> anyhow::Error {
    match error {
        unknown @ ActError::NotFound(_) => anyhow!("{unknown}\n\nhint: `tributary channel list` shows them"),
        error => error.into(),
    }
}

async fn list(env: &Env, caller: &Caller, json: bool) -> anyhow::Result<()> {
    let channels = channels::list(env, caller).await?;
    if json {
        println!("{}", serde_json::to_string_pretty(&Channels::from(channels))?);
        return Ok(());
    }
    let people = engine::people::list(env, caller).await?;
    let row = |channel: &Channel| {
        let owner = people.iter().find(|person| Some(person.id) == channel.person_id);
        let owner = owner.map_or("everyone".into(), |person| clipped(&person.called(), 40));
        let most = channel.max_per_minute.map_or("no limit".into(), |most| format!("{most} a minute"));
        let state = if channel.is_active { "active" } else { "inactive" };
        let made = relative(channel.created_at, env.clock.now());
        vec![
            channel.id.to_string(),
            channel.name.clone(),
            channel.provider_code.clone(),
            owner,
            most,
            made,
            state.into(),
        ]
    };
    let rows = channels.iter().map(row).collect::<Vec<_>>();
    table::print(&["id", "name", "provider", "owner", "takes", "made", "state"], &rows);
    Ok(())
}

fn print_refusals(env: &Env, refusals: &[Refused]) {
    eprintln!("\nRefused lately:\n");
    let row = |Refused { refusal, .. }: &Refused| {
        let n = if refusal.n > 1 { format!("{}×", refusal.n) } else { String::new() };
        let from = refusal.address.clone().unwrap_or_default();
        let when = relative(refusal.created_at, env.clock.now());
        vec![when, n, refusal.status.to_string(), from, refusal.reason.clone()]
    };
    table::print(&["when", "", "answer", "from", "why"], &refusals.iter().map(row).collect::<Vec<_>>());
    let mut remedies: Vec<&str> = refusals.iter().filter_map(|refused| refused.todo).collect();
    remedies.sort_unstable();
    remedies.dedup();
    for todo in remedies {
        eprintln!("\nhint: {todo}");
    }
}

/// Sends a test event to the server on this machine, signed for the URL that others know it by.
async fn send_test(env: &Env, caller: &Caller, id: ChannelId) -> anyhow::Result<ExitCode> {
    let sample = channels::test_event(env, caller, id).await.map_err(hinted)?;
    let to = Config { public_url: None, ..(*env.config).clone() }.base_url();
    let answer = env.http.post(&format!("{to}{}", sample.target), &sample.headers, sample.body).await;
    let (status, body) = answer.map_err(|fault| {
        anyhow!("the server at {to} did not answer: {}\n\nhint: `tributary up` starts it", fault.in_words())
    })?;
    println!("{status} {body}");
    Ok(if (200..300).contains(&status) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a channel on a mailbox.
fn print_standing(Standing { channel, mailbox }: Standing, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        println!("{}", serde_json::to_string_pretty(&ListedChannel::from(channel))?);
        return Ok(());
    }
    println!("{:16}{}", "channel", channel.id);
    println!("{:16}{}", "mailbox", mailbox.map_or("forgotten".into(), |mailbox| shown(&mailbox.name)));
    println!("{:16}{}", "query", channel.settings.query.as_deref().unwrap_or(USUAL_QUERY));
    println!("{:16}{}", "state", if channel.is_active { "active" } else { "inactive" });
    Ok(())
}

fn print(channel: Opened, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        println!("{}", serde_json::to_string_pretty(&MadeChannel::from(channel))?);
        return Ok(());
    }
    let (spec, proofs) = (channel.spec, &channel.secrets.proofs);
    println!("{:16}{}", "channel", channel.id);
    println!("{:16}{}", "url", channel.url);
    for (proof, secret) in spec.shown(proofs) {
        println!("{:16}{}", proof.label, secret.reveal());
    }
    for key in proofs.shared_keys.keys() {
        println!("{:16}{key}", "shared key");
    }
    let next = (spec.told.next_step)(channel.id, &channel.url, proofs);
    eprintln!("\n{}", next.text);
    if let Some(command) = next.command {
        println!("{command}");
    }
    Ok(())
}
