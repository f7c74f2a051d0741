//! `tributary tenant`: one per customer. The first, `default`, is yours.

use std::process::ExitCode;

use clap::Subcommand;
use engine::Config;

use super::{env, table};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a tenant.
    Create { name: String },
    /// List the tenants.
    List {
        /// As JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let mut conn = env.db.acquire().await?;
    match args.command {
        Command::Create { name } => println!("{}", store::tenants::create(&mut conn, &name).await?),
        Command::List { json } => {
            let tenants = store::tenants::list(&mut conn).await?;
            if json {
                println!("{}", serde_json::to_string_pretty(&tenants)?);
            } else {
                let row = |tenant: &store::tenants::Tenant| {
                    vec![
                        tenant.id.to_string(),
                        tenant.name.clone(),
                        if tenant.is_operator { "operator".into() } else { String::new() },
                    ]
                };
                table::print(&["id", "name", ""], &tenants.iter().map(row).collect::<Vec<_>>());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
