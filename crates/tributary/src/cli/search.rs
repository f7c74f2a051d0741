//! `tributary search`: searches memory, like the Search page.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::bail;
use domain::shown::{clipped, relative, shown};
use engine::Config;
use engine::memory::recall::{self, Hit};
use store::memory::{Filters, Mode};
use store::sources;

use super::{Shared, caller, env, print_json};

#[derive(clap::Args)]
pub struct Args {
    /// The text to look for, in any words.
    #[arg(required = true)]
    query: Vec<String>,
    /// The largest number of documents.
    #[arg(short, long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    k: u8,
    /// hybrid, keyword or vector.
    #[arg(long, default_value = "hybrid")]
    mode: Mode,
    /// Only documents of this type, such as `note`.
    #[arg(long = "type")]
    kind: Option<String>,
    /// Only documents of this source, by name or id.
    #[arg(long)]
    source: Option<String>,
    #[command(flatten)]
    shared: Shared,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    let source = match &args.source {
        None => None,
        Some(named) => {
            let known = env.db.read(&caller, async |tx| sources::all(tx).await).await?;
            let Some(source) = known.iter().find(|source| source.name == *named || source.id.to_string() == *named)
            else {
                let names: Vec<String> = known.iter().map(|source| shown(&source.name)).collect();
                bail!("there is no source {named:?}\n\nhint: sources are {}", names.join(", "));
            };
            Some(source.id)
        }
    };
    let query = recall::Query {
        text: args.query.join(" "),
        filters: Filters { source, r#type: args.kind, ..Filters::default() },
        k: args.k.into(),
        mode: args.mode,
    };
    let answer = recall::search(&env, &caller, &query).await?;
    if let Some(note) = &answer.note {
        eprintln!("note: {}", shown(note));
    }
    let is_found = !answer.hits.is_empty();
    if args.shared.json {
        print_json(&web::api::search::Found::new(answer, &config.base_url()))?;
    } else {
        let (now, is_bold) = (env.clock.now(), std::io::stdout().is_terminal());
        for (nth, hit) in answer.hits.iter().enumerate() {
            print(nth + 1, hit, now, is_bold);
        }
    }
    if !is_found {
        eprintln!("nothing found");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(number: usize, hit: &Hit, now: chrono::DateTime<chrono::Utc>, is_bold: bool) {
    let title = hit.title.as_deref().unwrap_or(&hit.external_id);
    let about = [shown(&hit.document_type.to_string()), shown(&hit.source_name), relative(hit.at, now)].join(" · ");
    let part = |part: &domain::text::Part| match part.is_match && is_bold {
        true => format!("\x1b[1m{}\x1b[0m", shown(&part.text)),
        false => shown(&part.text),
    };
    let snippet: String = hit.snippet.iter().map(part).collect();
    println!("{number}. {}\n   {about}\n   {}", clipped(title, 120), snippet.trim());
    println!("   found by {}\n   {}\n", hit.why, hit.document_id);
}
