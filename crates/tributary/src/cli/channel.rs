//! `tributary channel`: one door each for somebody's webhooks.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use domain::{ChannelId, TenantId};
use engine::{Config, Env};
use serde_json::json;
use store::channels::{self, NewChannel, Provider, Secrets};

use super::key::find;
use super::{env, table};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a channel; prints its URL, its secrets, and a command that sends something.
    Add {
        /// Who sends here.
        name: String,
        /// Verified requests a minute, or `none` for no limit.
        #[arg(long, default_value = "100", value_parser = max_per_minute)]
        max_per_minute: Limit,
        /// Tenant by name or id; yours when left out.
        #[arg(long)]
        tenant: Option<String>,
        /// As JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// List the channels of a tenant, without their secrets.
    List {
        #[arg(long)]
        tenant: Option<String>,
        /// As JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// Print a channel's URL and secrets again.
    Show {
        id: ChannelId,
        #[arg(long)]
        tenant: Option<String>,
        /// As JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// Take webhooks again.
    Enable {
        id: ChannelId,
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Refuse webhooks until enabled again.
    Disable {
        id: ChannelId,
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Delete a channel; what it brought stays.
    Delete {
        id: ChannelId,
        #[arg(long)]
        tenant: Option<String>,
    },
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
    let env = env(&config).await?;
    let mut tx = env.db.begin().await?;
    match args.command {
        Command::Add { name, max_per_minute: Limit(max_per_minute), tenant, json } => {
            let tenant_id = find(&mut tx, tenant.as_deref()).await?;
            let new = NewChannel { provider: Provider::Generic, name: &name, max_per_minute, webhook_secret: None };
            let (id, secrets) = channels::create(&mut tx, &env.vault, tenant_id, new).await?;
            tx.commit().await?;
            print(&env, id, &secrets, json)?;
        }
        Command::List { tenant, json } => {
            let tenant_id = find(&mut tx, tenant.as_deref()).await?;
            let channels = channels::list(&mut tx, tenant_id).await?;
            if json {
                println!("{}", serde_json::to_string_pretty(&channels)?);
                return Ok(ExitCode::SUCCESS);
            }
            let row = |channel: &channels::Channel| {
                let most = channel.max_per_minute.map_or("no limit".into(), |most| format!("{most} a minute"));
                let state = if channel.is_active { "active" } else { "inactive" };
                let made = table::ago(channel.created_at, env.clock.now());
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
        Command::Show { id, tenant, json } => {
            let tenant_id = find(&mut tx, tenant.as_deref()).await?;
            let secrets = channels::secrets(&mut tx, &env.vault, tenant_id, id).await?;
            print(&env, id, &secrets.with_context(|| unknown(id))?, json)?;
        }
        Command::Enable { id, tenant } => {
            let tenant_id = find(&mut tx, tenant.as_deref()).await?;
            set_active(&env, tx, tenant_id, id, true).await?;
            println!("enabled; servers take its webhooks within 5 s");
        }
        Command::Disable { id, tenant } => {
            let tenant_id = find(&mut tx, tenant.as_deref()).await?;
            set_active(&env, tx, tenant_id, id, false).await?;
            println!("disabled; servers refuse its webhooks within 5 s");
        }
        Command::Delete { id, tenant } => {
            let tenant_id = find(&mut tx, tenant.as_deref()).await?;
            if !channels::delete(&mut tx, &env.vault, tenant_id, id).await? {
                bail!(unknown(id));
            }
            tx.commit().await?;
            println!("deleted; what it brought stays");
        }
    }
    Ok(ExitCode::SUCCESS)
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

fn print(env: &Env, id: ChannelId, secrets: &Secrets, as_json: bool) -> anyhow::Result<()> {
    let url = format!("{}/ingest/{}", env.config.base_url(), secrets.ingestion_key.reveal());
    let (bearer, webhook_secret) = (secrets.bearer.reveal(), secrets.webhook_secret.reveal());
    if as_json {
        let shown = json!({ "id": id, "url": url, "bearer": bearer, "webhook_secret": webhook_secret });
        println!("{}", serde_json::to_string_pretty(&shown)?);
        return Ok(());
    }
    println!("channel         {id}");
    println!("url             {url}");
    println!("bearer key      {bearer}");
    println!("webhook secret  {webhook_secret}");
    eprintln!("\nKeep them private. To send something, signed:\n");
    println!(
        "body='{{\"type\":\"note\",\"content\":\"hello from a shell\"}}'; curl -sS '{url}' -H 'Content-Type: application/json' \
         -H \"X-Webhook-Signature: sha256=$(printf %s \"$body\" | openssl dgst -sha256 -hmac '{webhook_secret}' -r | cut -d' ' -f1)\" \
         --data-binary \"$body\""
    );
    Ok(())
}
