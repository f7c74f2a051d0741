//! `tributary tenant`: one per customer. The first, `default`, is yours.

use std::process::ExitCode;

use clap::Subcommand;
use domain::shown::shown;
use engine::{Config, Env, forgetting, tenants};
use web::api::forget::Forgotten;

use super::{Consent, caller, env, print_json, table};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a tenant.
    Create {
        /// Its name.
        name: String,
    },
    /// List the tenants.
    List {
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// Delete a tenant and everything it has, for good. Shows how much that is, and asks. Its keys and channels stop working at once.
    Forget {
        /// Its name or id.
        tenant: String,
        #[command(flatten)]
        consent: Consent,
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    match args.command {
        Command::Create { name } => println!("{}", tenants::create(&env, &name).await?),
        Command::List { json } => {
            let tenants = tenants::list(&env).await?;
            if json {
                println!("{}", serde_json::to_string_pretty(&tenants)?);
            } else {
                let row = |tenant: &store::tenants::Tenant| {
                    let state = match (tenant.is_operator, tenant.forgetting_at) {
                        (true, _) => "operator",
                        (false, Some(_)) => "being forgotten",
                        (false, None) => "",
                    };
                    vec![tenant.id.to_string(), tenant.name.clone(), state.to_owned()]
                };
                table::print(&["id", "name", ""], &tenants.iter().map(row).collect::<Vec<_>>());
            }
        }
        Command::Forget { tenant, consent, json } => return forget(&env, &tenant, &consent, json).await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn forget(env: &Env, tenant: &str, consent: &Consent, is_json: bool) -> anyhow::Result<ExitCode> {
    let operator = caller(env, None).await?;
    let id = caller(env, Some(tenant)).await?.tenant_id;
    let all = forgetting::counted(&tenants::count(env, id).await?);
    eprintln!(
        "tenant {} ({id}) will be forgotten, and this cannot be undone.\nGoes with it: {all}",
        shown(&tenants::get(env, id).await?.name)
    );
    if id == operator.tenant_id {
        anyhow::bail!(
            "this is your own tenant, which operates the installation: it cannot be forgotten\n\nhint: `tributary tenant list` shows the others"
        );
    }
    if !consent.given("Forget all of it?")? {
        return Ok(ExitCode::FAILURE);
    }
    let going = tenants::forget(env, &operator, id).await?;
    if is_json {
        print_json(&Forgotten::from(going))?;
    } else {
        println!(
            "its keys and channels are refused; a worker removes all of it step by step\n`tributary forgotten` shows how far it is"
        );
    }
    Ok(ExitCode::SUCCESS)
}
