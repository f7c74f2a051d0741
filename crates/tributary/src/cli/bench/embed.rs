//! The speed of the embedder `local`, over texts that are cut into chunks of 800 characters.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use engine::Config;
use engine::bench::{self, Case};

#[derive(clap::Args)]
pub struct Args {
    /// Text files to make vectors of. Default: this program's own description.
    files: Vec<PathBuf>,
    /// The number of chunks in a round.
    #[arg(long, default_value_t = 96)]
    chunks: usize,
}

const CHARS: usize = 800;
const OWN: &str = include_str!("../../../../../docs/ARCHITECTURE.md");

pub async fn run(config: &Config, args: &Args) -> anyhow::Result<Vec<Case>> {
    let mut text = String::new();
    for file in &args.files {
        text += &std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    }
    let text: Vec<char> = if args.files.is_empty() { OWN } else { &text }.chars().collect();
    let chunks: Vec<String> = text.chunks_exact(CHARS).map(|chunk| chunk.iter().collect()).collect();
    ensure!(!chunks.is_empty(), "the files have less than {CHARS} characters");
    let chunks: Vec<String> = chunks.into_iter().cycle().take(args.chunks.max(1)).collect();
    eprintln!("measuring; a minute or two");
    bench::embed(config, &chunks).await
}
