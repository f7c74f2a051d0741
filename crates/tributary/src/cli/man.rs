//! `tributary man`: manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::{Cli, settings};

#[derive(clap::Args)]
pub struct Args {
    /// Write the pages of all commands into this folder, such as ~/.local/share/man/man1. Without: print the first one (`tributary man | man -l -`).
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let command = settings::hidden(Cli::command());
    let Some(folder) = &args.to else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        print!("{}", String::from_utf8_lossy(&page));
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .with_context(|| format!("the pages cannot be written to {}", folder.display()))?;
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}
