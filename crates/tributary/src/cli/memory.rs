//! `tributary memory`: the model of a memory's vectors, its move to another one, and the language of its texts.

use std::process::ExitCode;

use clap::Subcommand;
use domain::shown::{clipped, dollars, number, plural};
use domain::{Caller, TenantId};
use engine::memory::languages;
use engine::memory::moves::{self, Status};
use engine::{ActError, Config, Env};
use web::api::memory::{Memories, MoveEstimate};

use super::{Consent, Shared, caller, env, hinted, print_json, table};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show which model each memory's searches use, and how far a move to another one is. Without `--tenant`: all memories.
    Status,
    /// Move a memory to another model, in the background: every chunk gets a new vector, then searches switch. Says first what that costs.
    Reembed {
        /// The model to move to; by default the one that EMBEDDER names. The settings must describe its embedder.
        #[arg(long)]
        to: Option<String>,
        /// Move the memories of all tenants.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Cancel a move, after asking: the memory stays with its model, also if EMBEDDER names another one, and the new vectors are removed.
    Cancel {
        #[command(flatten)]
        consent: Consent,
    },
    /// Fix the language of a memory's texts, so that forms of a word are found in it, or have it detected text by text again.
    Language {
        /// english, german, simple (for no language) and so on, or `auto`.
        language: String,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let (tenant, is_json) = (args.shared.tenant.as_deref(), args.shared.json);
    let caller = caller(&env, tenant).await?;
    match args.command {
        Command::Status => {
            let mut all = moves::status(&env, &caller).await?;
            all.retain(|status| tenant.is_none() || status.placed.tenant_id == caller.tenant_id.0);
            if is_json {
                print_json(&Memories::new(&env, all))?;
                return Ok(ExitCode::SUCCESS);
            }
            table::print(&["tenant", "model", "chunks", "language", "state"], &all.iter().map(row).collect::<Vec<_>>());
            let askable: Vec<&str> = env.embedders.models().collect();
            eprintln!("EMBEDDER names {}; the settings describe {}", askable[0], askable.join(", "));
            Ok(ExitCode::SUCCESS)
        }
        Command::Reembed { to, all, consent } => {
            anyhow::ensure!(!all || tenant.is_none(), "`--all` and `--tenant` exclude each other");
            let whose = if all { everybody(&env, &caller).await? } else { vec![caller] };
            reembed(&env, &whose, to.as_deref(), &consent, is_json).await
        }
        Command::Cancel { consent } => {
            let missing = || "this memory does not move\n\nhint: `tributary memory status` shows them".to_owned();
            if moves::own(&env, &caller).await?.is_none_or(|status| status.moving.is_none()) {
                anyhow::bail!(missing());
            }
            if !consent.given("Cancel the move? The vectors that were made for it are removed.")? {
                return Ok(ExitCode::FAILURE);
            }
            moves::cancel(&env, &caller).await.map_err(|error| hinted(error, missing))?;
            if is_json {
                print_json(&Memories::new(&env, moves::own(&env, &caller).await?.into_iter().collect()))?;
            } else {
                println!("cancelled; a worker removes the new vectors step by step");
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Language { language } => {
            languages::set(&env, &caller, &language).await?;
            if is_json {
                print_json(&Memories::new(&env, moves::own(&env, &caller).await?.into_iter().collect()))?;
            } else {
                println!("the language of its texts is {} now", language.trim().to_lowercase());
                eprintln!(
                    "a worker gives it to what was remembered before; `tributary memory status` shows when that is done"
                );
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn row(status: &Status) -> Vec<String> {
    let placed = &status.placed;
    let state = match &status.moving {
        Some(moving) => moves::in_words(moving),
        None if !status.can_be_asked => "searched by keyword alone: the settings describe no embedder of it".to_owned(),
        None if placed.model == status.configured => "as EMBEDDER names it".to_owned(),
        None if placed.is_chosen => "chosen".to_owned(),
        None => format!("EMBEDDER names {}", status.configured),
    };
    let mut lang = placed.lang.as_deref().unwrap_or(languages::AUTO).to_owned();
    if placed.is_relabelled {
        lang += " (under way)";
    }
    vec![clipped(&placed.tenant, 40), placed.model.clone(), number(placed.n_chunks), lang, state]
}

/// A caller for each tenant that has a memory.
async fn everybody(env: &Env, operator: &Caller) -> anyhow::Result<Vec<Caller>> {
    let all = moves::status(env, operator).await?;
    let of = |status: Status| {
        let id = TenantId(status.placed.tenant_id);
        Caller::local("the command line", id, id == operator.tenant_id)
    };
    Ok(all.into_iter().map(of).collect())
}

async fn reembed(
    env: &Env,
    whose: &[Caller],
    to: Option<&str>,
    consent: &Consent,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let missing = || "nothing has been remembered yet, so there is nothing to move".to_owned();
    let (mut moved, mut sum) = (Vec::new(), (0, 0, 0));
    for caller in whose {
        let estimate = moves::estimate(env, caller, to).await.map_err(|error| hinted(error, missing))?;
        if estimate.from != estimate.to {
            sum = (sum.0 + estimate.chunks, sum.1 + estimate.tokens, sum.2 + estimate.cost_micros);
            moved.push((caller, estimate));
        } else if whose.len() == 1 {
            anyhow::bail!("this memory uses the model {} already", estimate.to);
        }
    }
    let Some((_, first)) = moved.first() else {
        eprintln!("every memory uses that model already");
        return Ok(ExitCode::SUCCESS);
    };
    let n = i64::try_from(moved.len()).unwrap_or(i64::MAX);
    let from = if moved.len() == 1 { format!(" from {}", first.from) } else { String::new() };
    eprintln!(
        "{} will move{from} to {}: {} a new vector, about {} tokens, cost: {}.\nSearch goes on meanwhile, and switches at the end.",
        plural(n, "memory", "memories"),
        first.to,
        plural(sum.0, "chunk gets", "chunks get"),
        number(sum.1),
        dollars(sum.2),
    );
    if !consent.given("Begin?")? {
        return Ok(ExitCode::FAILURE);
    }
    let mut code = ExitCode::SUCCESS;
    for (caller, _) in moved {
        match moves::begin(env, caller, to).await {
            Ok(estimate) if is_json => print_json(&MoveEstimate::from(estimate))?,
            Ok(estimate) => println!("the memory of tenant {} moves to {}", caller.tenant_id, estimate.to),
            // One that moves already must not keep the others from moving.
            Err(ActError::Conflict(what)) if whose.len() > 1 => {
                eprintln!("tenant {}: {what}", caller.tenant_id);
                code = ExitCode::FAILURE;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if !is_json {
        eprintln!("a worker does it step by step; `tributary memory status` shows how far it is");
    }
    Ok(code)
}
