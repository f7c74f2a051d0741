//! `tributary mcp`: the MCP server for programs that start one themselves (stdio), and how programs are set up.

mod relay;
mod setup;

use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;
use domain::Secret;
use engine::Config;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    command: Option<Command>,
}

// The server that answers. No doc comment: clap would print that instead of the command's own.
#[derive(clap::Args)]
struct Server {
    /// The server, such as `https://hear.example.com`. Default: the one of this machine.
    #[arg(long, env = "TRIBUTARY_URL", value_parser = engine::config::server_url)]
    url: Option<String>,
    /// A key for this device: `tributary key create laptop --scopes read`.
    #[arg(long, env = "TRIBUTARY_KEY", hide_env_values = true)]
    key: Option<Secret>,
}

#[derive(Subcommand)]
enum Command {
    /// Print how a program is set up, with a key of its own; or write it into the program's file.
    Setup(setup::Args),
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    if let Some(Command::Setup(setup)) = args.command {
        return setup::run(config, setup).await;
    }
    let Some(key) = args.server.key else {
        bail!(
            "a program needs a key\n\nhint: make one with `tributary key create laptop --scopes read`, and set TRIBUTARY_KEY to it; \
             `tributary mcp setup claude-desktop` does both"
        );
    };
    relay::run(&args.server.url.unwrap_or_else(|| config.base_url()), key).await
}
