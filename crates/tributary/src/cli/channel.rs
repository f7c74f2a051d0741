//! `tributary channel`: one door each for somebody's webhooks.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use domain::shown::relative;
use domain::{ChannelId, Secret, TenantId};
use engine::intake::sample;
use engine::{Config, Env};
use serde_json::json;
use store::channels::{self, NewChannel, Provider, Rotation, Secrets, Settings};

use super::key::find;
use super::{env, table};

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
    /// Make a channel; prints its URL, its secrets, and a command that sends something.
    Add {
        /// Who sends here.
        name: String,
        /// Whose webhooks: generic, twilio or postmark.
        #[arg(long, default_value = "generic", value_parser = provider)]
        provider: Provider,
        /// What the sender signs with: Twilio's primary auth token, or a generic sender's own secret. `-` reads it from the first line of
        /// stdin.
        #[arg(long, env = "CHANNEL_SECRET", hide_env_values = true)]
        secret: Option<Secret>,
        /// Verified requests a minute, or `none` for no limit. Default: 100 for generic channels, none for others.
        #[arg(long, value_parser = max_per_minute)]
        max_per_minute: Option<Limit>,
        /// Make a contact of every address that is not known yet.
        #[arg(long)]
        auto_create_contacts: bool,
        /// Postmark: a network its requests come from, instead of those it publishes; may be repeated.
        #[arg(long, value_name = "NETWORK")]
        range: Vec<String>,
        /// Postmark: take requests from anywhere and without user and password; the URL alone is the secret.
        #[arg(long)]
        no_require_ip: bool,
    },
    /// List the channels of a tenant, without their secrets.
    List,
    /// Print a channel's URL and secrets again, and what it refused lately.
    Show { id: ChannelId },
    /// Make new secrets; the old ones are good for another day.
    Rotate {
        id: ChannelId,
        /// Twilio's new auth token, or a generic sender's own new secret. `-` reads it from the first line of stdin.
        #[arg(long, env = "CHANNEL_SECRET", hide_env_values = true)]
        secret: Option<Secret>,
        /// Also make a new URL; the old one is closed at once.
        #[arg(long)]
        url: bool,
        /// How long the old secrets are good, in hours.
        #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(0..=8_760))]
        keep_hours: u32,
    },
    /// Give a Twilio channel a shared key that Twilio signs with, by its id; without a secret the key is removed.
    SharedKey {
        id: ChannelId,
        key: String,
        /// Its secret. `-` reads it from the first line of stdin.
        #[arg(long)]
        secret: Option<Secret>,
    },
    /// Take webhooks again.
    Enable { id: ChannelId },
    /// Refuse webhooks until enabled again.
    Disable { id: ChannelId },
    /// Delete a channel; what it brought stays.
    Delete { id: ChannelId },
    /// Send a test event to the running server, signed as the channel's provider would sign it.
    SendTest { id: ChannelId },
}

fn provider(text: &str) -> Result<Provider, String> {
    text.parse().map_err(|error: store::Error| error.to_string())
}

/// The secret itself, or what stands in the first line of stdin.
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
    let (env, json) = (env(&config).await?, args.json);
    let mut tx = env.db.begin().await?;
    let tenant_id = find(&mut tx, args.tenant.as_deref()).await?;
    match args.command {
        Command::Add { name, provider, secret, max_per_minute, auto_create_contacts, range, no_require_ip } => {
            if !engine::intake::are_networks(&range) {
                bail!("--range takes networks such as 50.31.156.0/24");
            }
            let secret = read_secret(secret)?;
            if provider == Provider::Twilio && secret.is_none() {
                bail!(
                    "a Twilio channel needs the account's primary auth token\n\nhint: give it with `--secret -` and paste it, or in CHANNEL_SECRET"
                );
            }
            let new = NewChannel {
                provider,
                name: &name,
                max_per_minute: max_per_minute.map_or(provider.usual_limit(), |Limit(most)| most),
                person_id: None,
                auto_create_contacts,
                settings: Settings { require_ip: !no_require_ip, ranges: (!range.is_empty()).then_some(range) },
                secret,
            };
            let (id, secrets) = channels::create(&mut tx, &env.vault, tenant_id, new).await?;
            tx.commit().await?;
            print(&env, id, provider, &secrets, json)?;
        }
        Command::List => {
            let channels = channels::list(&mut tx, tenant_id).await?;
            if json {
                println!("{}", serde_json::to_string_pretty(&channels)?);
                return Ok(ExitCode::SUCCESS);
            }
            let row = |channel: &channels::Channel| {
                let most = channel.max_per_minute.map_or("no limit".into(), |most| format!("{most} a minute"));
                let state = if channel.is_active { "active" } else { "inactive" };
                let made = relative(channel.created_at, env.clock.now());
                vec![
                    channel.id.to_string(),
                    channel.name.clone(),
                    channel.provider_code.clone(),
                    most,
                    made,
                    state.into(),
                ]
            };
            let rows = channels.iter().map(row).collect::<Vec<_>>();
            table::print(&["id", "name", "provider", "takes", "made", "state"], &rows);
        }
        Command::Show { id } => {
            let (provider, secrets) = opened(&mut tx, &env, tenant_id, id).await?;
            print(&env, id, provider, &secrets, json)?;
            let refusals = channels::refusals(&mut tx, tenant_id, id, 10).await?;
            if !json && !refusals.is_empty() {
                eprintln!("\nRefused lately:\n");
                let row = |refusal: &channels::Refusal| {
                    let n = if refusal.n > 1 { format!("{}×", refusal.n) } else { String::new() };
                    let from = refusal.address.clone().unwrap_or_default();
                    vec![
                        relative(refusal.created_at, env.clock.now()),
                        n,
                        refusal.status.to_string(),
                        from,
                        refusal.reason.clone(),
                    ]
                };
                table::print(&["when", "", "answer", "from", "why"], &refusals.iter().map(row).collect::<Vec<_>>());
            }
        }
        Command::Rotate { id, secret, url, keep_hours } => {
            let until = env.clock.now() + chrono::TimeDelta::hours(keep_hours.into());
            let rotation = Rotation { secret: read_secret(secret)?, is_url_too: url, until };
            let (provider, _) = opened(&mut tx, &env, tenant_id, id).await?;
            let rotated = channels::rotate(&mut tx, &env.vault, tenant_id, id, rotation).await?;
            tx.commit().await?;
            print(&env, id, provider, &rotated.with_context(|| unknown(id))?, json)?;
            eprintln!("The secrets before are good for another {keep_hours} h.");
        }
        Command::SharedKey { id, key, secret } => {
            let secret = read_secret(secret)?;
            let done = if secret.is_some() { "added" } else { "removed" };
            if !channels::set_shared_key(&mut tx, &env.vault, tenant_id, id, &key, secret).await? {
                bail!(unknown(id));
            }
            tx.commit().await?;
            println!("{done}; servers know within 5 s");
        }
        Command::Enable { id } => {
            set_active(&env, tx, tenant_id, id, true).await?;
            println!("enabled; servers take its webhooks within 5 s");
        }
        Command::Disable { id } => {
            set_active(&env, tx, tenant_id, id, false).await?;
            println!("disabled; servers refuse its webhooks within 5 s");
        }
        Command::Delete { id } => {
            if !channels::delete(&mut tx, &env.vault, tenant_id, id).await? {
                bail!(unknown(id));
            }
            tx.commit().await?;
            println!("deleted; what it brought stays");
        }
        Command::SendTest { id } => {
            let (provider, secrets) = opened(&mut tx, &env, tenant_id, id).await?;
            tx.commit().await?;
            return send_test(&env, provider, &secrets).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn opened(
    tx: &mut store::Tx,
    env: &Env,
    tenant_id: TenantId,
    id: ChannelId,
) -> anyhow::Result<(Provider, Secrets)> {
    let channel = channels::get(tx, tenant_id, id).await?.with_context(|| unknown(id))?;
    let secrets = channels::secrets(tx, &env.vault, tenant_id, id).await?.with_context(|| unknown(id))?;
    Ok((channel.provider_code.parse()?, secrets))
}

/// To the server on this machine, signed for the URL that others know it by.
async fn send_test(env: &Env, provider: Provider, secrets: &Secrets) -> anyhow::Result<ExitCode> {
    let sample = sample(provider, secrets, &env.config.base_url(), env.clock.now())
        .context("the channel has no secret to sign with")?;
    let to = Config { public_url: None, ..(*env.config).clone() }.base_url();
    let answer = env.http.post(&format!("{to}{}", sample.target), &sample.headers, sample.body).await;
    let (status, body) = answer.map_err(|fault| {
        anyhow::anyhow!("the server at {to} did not answer: {}\n\nhint: `tributary up` starts it", fault.in_words())
    })?;
    println!("{status} {body}");
    Ok(if (200..300).contains(&status) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn set_active(
    env: &Env,
    mut tx: store::Tx,
    tenant_id: TenantId,
    id: ChannelId,
    is_active: bool,
) -> anyhow::Result<()> {
    if !channels::set_active(&mut tx, &env.vault, tenant_id, id, is_active).await? {
        bail!(unknown(id));
    }
    Ok(tx.commit().await?)
}

fn unknown(id: ChannelId) -> String {
    format!("there is no channel {id}\n\nhint: `tributary channel list` shows them")
}

fn print(env: &Env, id: ChannelId, provider: Provider, secrets: &Secrets, as_json: bool) -> anyhow::Result<()> {
    let url = engine::intake::url(&env.config.base_url(), provider, secrets);
    let text = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.reveal().to_owned());
    let (bearer, webhook_secret) = (text(&secrets.proofs.bearer), text(&secrets.proofs.webhook_secret));
    if as_json {
        let shown = json!({ "id": id, "provider": provider.as_str(), "url": url, "bearer": bearer, "webhook_secret": webhook_secret });
        println!("{}", serde_json::to_string_pretty(&shown)?);
        return Ok(());
    }
    println!("channel         {id}");
    println!("url             {url}");
    if let Some(bearer) = &bearer {
        println!("bearer key      {bearer}");
    }
    for key in secrets.proofs.shared_keys.keys() {
        println!("shared key      {key}");
    }
    match (provider, webhook_secret) {
        (Provider::Generic, Some(secret)) => {
            println!("webhook secret  {secret}");
            eprintln!("\nKeep them private. To send something, signed:\n");
            println!(
                "body='{{\"type\":\"note\",\"content\":\"hello from a shell\"}}'; curl -sS '{url}' -H 'Content-Type: application/json' \
                 -H \"X-Webhook-Signature: sha256=$(printf %s \"$body\" | openssl dgst -sha256 -hmac '{secret}' -r | cut -d' ' -f1)\" \
                 --data-binary \"$body\""
            );
        }
        (Provider::Twilio, _) => eprintln!(
            "\nKeep it private. Paste all of it into Twilio, with what follows the #: it makes Twilio try again when an answer is an error.\n\
             Twilio has to reach it: PUBLIC_URL is how. docs/connect.md says where to paste it; `tributary channel send-test {id}` tries it."
        ),
        (Provider::Postmark, _) => eprintln!(
            "\nKeep it private: user and password are in it. Paste it into Postmark as the inbound webhook.\n\
             docs/connect.md says where; `tributary channel send-test {id}` tries it."
        ),
        _ => {}
    }
    Ok(())
}
