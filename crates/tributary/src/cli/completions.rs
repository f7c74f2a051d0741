//! `tributary completions`: what a shell needs to complete commands and options.

use std::process::ExitCode;

use clap::{CommandFactory as _, ValueEnum};
use clap_complete::Shell;

use super::{Cli, settings};

/// The shells that a person may have.
#[derive(Clone, Copy, ValueEnum)]
enum For {
    Bash,
    Zsh,
    Fish,
}

#[derive(clap::Args)]
pub struct Args {
    /// bash: `source <(tributary completions bash)` in ~/.bashrc. zsh: into a file `_tributary` in a folder of $fpath. fish: into
    /// ~/.config/fish/completions/tributary.fish.
    #[arg(value_enum)]
    shell: For,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let shell = match args.shell {
        For::Bash => Shell::Bash,
        For::Zsh => Shell::Zsh,
        For::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut settings::hidden(Cli::command()), "tributary", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}
