//! `tributary document`: what memory holds.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use domain::shown::{clipped, relative, shown, shown_lines};
use engine::Config;
use store::memory::{Listed, chunks, documents};
use uuid::Uuid;

use super::{caller, env, table};

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
    /// List the newest documents.
    List {
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1_000))]
        limit: i64,
    },
    /// Show one document with its text; with its chunks as JSON.
    Show { id: Uuid },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.tenant.as_deref()).await?;
    let now = env.clock.now();
    let mut tx = env.db.begin_as(&caller).await?;
    match args.command {
        Command::List { limit } => {
            let listed = documents::list(&mut tx, None, limit).await?;
            if args.json {
                println!("{}", serde_json::to_string_pretty(&listed)?);
                return Ok(ExitCode::SUCCESS);
            }
            let row = |listed: &Listed| {
                vec![
                    listed.id.to_string(),
                    clipped(listed.title.as_deref().unwrap_or(&listed.external_id), 50),
                    shown(&listed.document_type.to_string()),
                    clipped(&listed.source_name, 30),
                    if listed.is_pending() { "waits for vectors".into() } else { "remembered".into() },
                    relative(listed.updated_at, now),
                ]
            };
            table::print(
                &["id", "title", "type", "source", "state", "changed"],
                &listed.iter().map(row).collect::<Vec<_>>(),
            );
        }
        Command::Show { id } => {
            let document = documents::get(&mut tx, id).await?.with_context(|| {
                format!("there is no document {id}\n\nhint: `tributary document list` shows the newest")
            })?;
            if args.json {
                let mut value = serde_json::to_value(&document)?;
                value["chunks"] = serde_json::to_value(chunks::list(&mut tx, id, i64::MAX).await?)?;
                println!("{}", serde_json::to_string_pretty(&value)?);
                return Ok(ExitCode::SUCCESS);
            }
            let vectors = match (&document.embedding_model, document.is_pending()) {
                (Some(model), _) => format!("by {model}"),
                (None, true) => "waits for them".into(),
                (None, false) => "none".into(),
            };
            let facts = [
                ("title", shown(document.title.as_deref().unwrap_or_default())),
                ("type", shown(&document.document_type.to_string())),
                ("source", shown(&document.source_name)),
                ("name there", shown(&document.external_id)),
                ("language", document.lang.clone()),
                ("chunks", document.n_chunks.to_string()),
                ("vectors", vectors),
                ("version", document.revision.to_string()),
                ("remembered", relative(document.created_at, now)),
                ("changed", relative(document.updated_at, now)),
                ("deleted", document.deleted_at.map(|at| relative(at, now)).unwrap_or_default()),
            ];
            for (label, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
                println!("{label:11} {fact}");
            }
            if !document.text.is_empty() {
                println!("\n{}", shown_lines(&document.text));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
