//! `tributary key` and `tributary signin`: keys for programs, links for browsers.

use std::process::ExitCode;

use clap::Subcommand;
use domain::shown::{relative, shown};
use domain::{Caller, KeyId, Scope};
use engine::keys::{self, NewKey};
use engine::{Config, Env, rotation, sessions};
use store::keys::Key;

use super::pick::{Choice, Kind, pick};
use super::{Consent, caller, env, hinted, print_json, table};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a key and print it, once. Use one key per device or program.
    Create {
        /// Its name, shown wherever the key acts.
        name: String,
        /// Its rights: read, write, agent, service (everything of its tenant).
        #[arg(long, value_delimiter = ',', default_value = "read,write")]
        scopes: Vec<Scope>,
        /// The person it belongs to, by e-mail address. An unknown person is created.
        #[arg(long)]
        person: Option<String>,
        /// The tenant, by name or id. Default: yours.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// List a tenant's keys, without their secrets.
    List {
        /// The tenant, by name or id. Default: yours.
        #[arg(long)]
        tenant: Option<String>,
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key, after asking. It is refused from then on.
    Revoke {
        /// Its name or its id.
        key: String,
        #[command(flatten)]
        consent: Consent,
        /// The tenant, by name or id. Default: yours.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Seal every stored secret with a new master key, while everything runs. An interrupted rotation goes on when this is run again.
    ///
    /// With the key in the file master.key, this makes the new key; running processes of this machine read the file again by themselves. With MASTER_KEY
    /// in the environment, give every process the new key as MASTER_KEY and the old one as MASTER_KEY_OLD first.
    RotateMaster,
}

#[derive(clap::Args)]
pub struct SigninArgs {
    /// The tenant, by name or id. Default: yours.
    #[arg(long)]
    tenant: Option<String>,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    match args.command {
        Command::Create { name, scopes, person, tenant } => {
            let caller = caller(&env, tenant.as_deref()).await?;
            let new = NewKey { name: &name, scopes: &scopes, person: person.as_deref() };
            let made = keys::create(&env, &caller, &new).await?;
            eprintln!("key {}; it is shown this once:", made.id);
            println!("{}", made.secret.reveal());
        }
        Command::List { tenant, json } => {
            let caller = caller(&env, tenant.as_deref()).await?;
            let listed = keys::list(&env, &caller).await?;
            if json {
                print_json(&web::api::keys::Keys::from(listed))?;
                return Ok(ExitCode::SUCCESS);
            }
            let now = env.clock.now();
            let row = |key: &Key| {
                let used = key.last_used_at.map_or("never".into(), |at| relative(at, now));
                let state = if key.revoked_at.is_some() { "revoked" } else { "good" };
                vec![
                    key.id.to_string(),
                    key.name.clone(),
                    key.scopes.join(","),
                    key.person.clone().unwrap_or_default(),
                    used,
                    state.into(),
                ]
            };
            table::print(
                &["id", "name", "scopes", "person", "used", "state"],
                &listed.iter().map(row).collect::<Vec<_>>(),
            );
        }
        Command::RotateMaster => return rotate_master(&env).await,
        Command::Revoke { key, consent, tenant } => {
            let caller = caller(&env, tenant.as_deref()).await?;
            let (id, name) = find(&env, &caller, &key).await?;
            if !consent.given(&format!("Revoke key {} ({id})? What uses it is refused from then on.", shown(&name)))? {
                return Ok(ExitCode::FAILURE);
            }
            let missing = || format!("there is no good key {id}\n\nhint: `tributary key list` shows them");
            keys::revoke(&env, &caller, id).await.map_err(|error| hinted(error, missing))?;
            println!("revoked; servers refuse it within 5 s");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The key that is meant. A revoked one is not: another key may have its name.
async fn find(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<(KeyId, String)> {
    let good = keys::list(env, caller).await?.into_iter().filter(|key| key.revoked_at.is_none());
    let choices = good.map(|key| {
        let names = [Some(key.name.clone())];
        Choice::new((KeyId(key.id), key.name), key.id, names)
    });
    pick(Kind { noun: "good key", plural: "keys", list: "tributary key list" }, choices.collect(), text)
}

pub async fn signin(config: Config, args: SigninArgs) -> anyhow::Result<ExitCode> {
    println!("{}", new_link(&env(&config).await?, args.tenant.as_deref()).await?);
    Ok(ExitCode::SUCCESS)
}

/// Makes the sign-in link of a tenant.
pub async fn new_link(env: &Env, tenant: Option<&str>) -> anyhow::Result<String> {
    Ok(sessions::new_link(env, &caller(env, tenant).await?).await?.url.reveal().to_owned())
}

async fn rotate_master(env: &Env) -> anyhow::Result<ExitCode> {
    let rotated = rotation::rotate_master(env, |how_far| eprintln!("{how_far}")).await?;
    println!("{} secrets are sealed with master key {}", rotated.n_resealed, rotated.key_id);
    if rotated.n_unreadable > 0 {
        eprintln!(
            "{} secrets open with no key that is here and were left as they are; the old keys stay\n\n\
             hint: add the missing key below the others, or as MASTER_KEY_OLD, and run this again",
            rotated.n_unreadable
        );
        return Ok(ExitCode::FAILURE);
    }
    match rotated.retired {
        Some(path) => eprintln!(
            "the old key is in {}: backups from before need it. Delete it when they are gone, or if it has leaked.",
            path.display()
        ),
        None => eprintln!("MASTER_KEY_OLD is no longer needed here. Backups from before need the old key."),
    }
    Ok(ExitCode::SUCCESS)
}
