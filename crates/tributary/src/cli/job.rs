//! `tributary job`: runs of work on sources.

use std::process::ExitCode;

use clap::Subcommand;
use domain::shown::{clipped, dollars, duration, number, relative, shown};
use domain::{Caller, JobId, JobStatus};
use engine::pull::words::{asked_by, kind};
use engine::{ActError, Config, Env, jobs};
use store::jobs::{Filter, Job};

use super::pick::{Choice, Kind, pick};
use super::{Shared, caller, env, hinted, print_json, progress, source, table, words};

/// The number of newest jobs in which an abbreviated id is looked up.
const NEWEST: i64 = 1_000;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the newest jobs.
    List {
        /// Only those of this source, by name or id.
        #[arg(long)]
        source: Option<String>,
        /// pending, running, completed, failed, paused or cancelled.
        #[arg(long)]
        status: Option<JobStatus>,
        /// The largest number of rows.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=1_000))]
        limit: i64,
    },
    /// Show a job: its documents, its cost, and every problem.
    Show {
        /// Its id, or the beginning of it.
        id: String,
        /// Show its progress until it ends.
        #[arg(long)]
        watch: bool,
    },
    /// Continue a failed or cancelled job where it stopped.
    Retry {
        /// Its id, or the beginning of it.
        id: String,
    },
    /// End a job. Its documents stay.
    Cancel {
        /// Its id, or the beginning of it.
        id: String,
    },
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let env = env(&config).await?;
    let caller = caller(&env, args.shared.tenant.as_deref()).await?;
    match args.command {
        Command::List { source, status, limit } => {
            let source_id = match &source {
                Some(text) => Some(source::find(&env, &caller, text).await?),
                None => None,
            };
            let filter = Filter { source_id, status, limit, ..Filter::default() };
            let listed = jobs::list(&env, &caller, filter).await?;
            if args.shared.json {
                let (listed, next_before) = listed;
                print_json(&web::api::jobs::Jobs::new(&env, listed, next_before))?;
            } else {
                print(&env, &listed.0);
            }
        }
        Command::Show { id, watch } => {
            let job = find(&env, &caller, &id).await?;
            if watch {
                return progress::watch(&env, &caller, JobId(job.id), args.shared.json).await;
            }
            if args.shared.json {
                print_json(&web::api::jobs::Job::new(&env, job))?;
            } else {
                show(&env, &job);
            }
        }
        Command::Retry { id } => {
            let id = JobId(find(&env, &caller, &id).await?.id);
            jobs::retry(&env, &caller, id).await.map_err(|error| with_hint(error, id))?;
            let words = format!("it goes on where it was; `tributary job show {id} --watch` shows it");
            say(&env, &caller, id, &words, args.shared.json).await?;
        }
        Command::Cancel { id } => {
            let id = JobId(find(&env, &caller, &id).await?.id);
            jobs::cancel(&env, &caller, id).await.map_err(|error| with_hint(error, id))?;
            let words = format!("cancelled; its documents stay, and `tributary job retry {id}` goes on from there");
            say(&env, &caller, id, &words, args.shared.json).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn with_hint(error: ActError, id: JobId) -> anyhow::Error {
    match error {
        ActError::Conflict(why) => anyhow::anyhow!("{why}\n\nhint: `tributary job show {id}` says how it is"),
        error => error.into(),
    }
}

/// Prints what was done, in words or as the job is now.
async fn say(env: &Env, caller: &Caller, id: JobId, words: &str, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        return print_json(&web::api::jobs::Job::new(env, jobs::get(env, caller, id).await?));
    }
    println!("{words}");
    Ok(())
}

/// The job that is meant: by its id, or by the beginning of it.
async fn find(env: &Env, caller: &Caller, text: &str) -> anyhow::Result<Job> {
    let hint = "hint: `tributary job list` shows the newest";
    if let Ok(id) = text.parse() {
        let found = jobs::get(env, caller, id).await;
        return found.map_err(|error| hinted(error, || format!("there is no job {text}\n\n{hint}")));
    }
    let (newest, _) = jobs::list(env, caller, Filter { limit: NEWEST, ..Filter::default() }).await?;
    let choices = newest.into_iter().map(|job| {
        let id = job.id;
        Choice::new(job, id, [])
    });
    pick(Kind { noun: "job", plural: "jobs", list: "tributary job list" }, choices.collect(), text)
}

pub(super) fn print(env: &Env, jobs: &[Job]) {
    let now = env.clock.now();
    let row = |job: &Job| {
        vec![
            job.id.to_string(),
            clipped(&job.source_name, 30),
            kind(job.kind).to_owned(),
            job.status.to_string(),
            words::brought(job),
            relative(job.created_at, now),
            if job.status == JobStatus::Completed { String::new() } else { clipped(&state(env, job), 60) },
        ]
    };
    table::print(
        &["id", "source", "reads", "status", "brought", "asked for", "now"],
        &jobs.iter().map(row).collect::<Vec<_>>(),
    );
}

fn state(env: &Env, job: &Job) -> String {
    words::state(env.providers.label(&job.source_provider), job)
}

fn show(env: &Env, job: &Job) {
    let now = env.clock.now();
    let took = match (job.started_at, job.finished_at) {
        (Some(from), Some(to)) => duration(to - from),
        _ => String::new(),
    };
    let embedding = match job.embed_texts {
        0 => "none: every text was known already".to_owned(),
        texts => format!(
            "{} texts in {} calls, about {} tokens, cost about {}",
            number(texts),
            number(job.embed_calls),
            number(job.embed_tokens),
            dollars(job.cost_micros)
        ),
    };
    let facts = [
        ("id", job.id.to_string()),
        ("source", format!("{} ({})", shown(&job.source_name), shown(&job.source_provider))),
        ("reads", kind(job.kind).to_owned()),
        ("status", format!("{}: {}", job.status, shown(&state(env, job)))),
        ("asked for", format!("{} by {}", relative(job.created_at, now), shown(asked_by(job)))),
        ("brought", words::brought(job)),
        ("embedding", embedding),
        ("took", took),
        ("note", shown(job.note.as_deref().unwrap_or_default())),
        ("error", shown(job.error_message.as_deref().unwrap_or_default())),
    ];
    for (label, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        println!("{label:10} {fact}");
    }
    let troubles = job.error_details.as_array().map(Vec::as_slice).unwrap_or_default();
    if !troubles.is_empty() {
        println!("\nTroubles");
        let row = |trouble: &serde_json::Value| {
            let text = |field: &str| trouble[field].as_str().unwrap_or_default().to_owned();
            let at = text("at").parse().map_or_else(|_| String::new(), |at| relative(at, now));
            vec![at, shown(&text("kind")), shown(&text("what"))]
        };
        table::print(&["when", "kind", "what"], &troubles.iter().map(row).collect::<Vec<_>>());
    }
}
