//! Shows all sources, or one.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use domain::Caller;
use domain::shown::{clipped, counted, number, relative, shown};
use engine::Env;
use engine::pull::words::cadence;
use engine::pull::words::changes::{changes, until};
use engine::pull::words::{next_sync, read_by};
use engine::sources::{self, Watched};
use store::failures::Failure;
use store::jobs::Filter;
use store::queue::MOST_COUNTED;
use store::sources::{Event, Source};

use super::super::{job, print_json, table, words};
use super::find::{find, with_hint};

/// The numbers of failed records, latest jobs and latest events that are shown.
const FAILURES: i64 = 20;
const JOBS: i64 = 5;
const EVENTS: usize = 10;

/// The source's provider, as people call it.
pub fn who<'a>(env: &Env, source: &'a Source) -> &'a str {
    env.providers.label(&source.provider)
}

pub async fn list(env: &Env, caller: &Caller, is_json: bool) -> anyhow::Result<ExitCode> {
    if is_json {
        print_json(&web::api::sources::Sources::new(env, sources::list(env, caller).await?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let watched = sources::watch(env, caller, None).await?;
    let listed: Vec<(&Source, words::Health)> =
        watched.iter().map(|watched| (&watched.source, health(env, watched))).collect();
    if listed.is_empty() {
        let names: Vec<&str> = env.providers.all().iter().map(|provider| provider.name).collect();
        eprintln!("No source is connected yet: `tributary source connect PROVIDER`, one of {}.", names.join(", "));
        return Ok(ExitCode::SUCCESS);
    }
    let now = env.clock.now();
    let row = |(source, health): &(&Source, words::Health)| {
        vec![
            source.id.to_string(),
            clipped(&source.name, 40),
            who(env, source).to_owned(),
            health.word.to_owned(),
            counted(source.n_documents, MOST_COUNTED),
            source.last_successful_sync_at.map_or_else(|| "never".into(), |at| relative(at, now)),
            next_sync(source, now).map_or_else(String::new, |at| relative(at, now)),
        ]
    };
    table::print(
        &["id", "name", "provider", "health", "documents", "synced", "next"],
        &listed.iter().map(row).collect::<Vec<_>>(),
    );
    for (source, health) in listed.iter().filter(|(_, health)| health.is_trouble) {
        let todo = if health.word == "reconnect" { "reconnect" } else { "show" };
        eprintln!("\n{}: {}\nhint: `tributary source {todo} {}`", shown(&source.name), health.what, source.id);
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn show(env: &Env, caller: &Caller, text: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    let id = find(env, caller, text).await?;
    let whole = sources::whole(env, caller, id).await.map_err(|error| with_hint(error, id))?;
    if is_json {
        print_json(&web::api::sources::WholeSource::new(env, whole))?;
        return Ok(ExitCode::SUCCESS);
    }
    let sources::WholeSource { source, counts, events, .. } = whole;
    let watched = sources::watch(env, caller, Some(id)).await?.pop().context("the source is gone")?;
    let health = health(env, &watched);
    let filter = Filter { source_id: Some(id), limit: JOBS, ..Filter::default() };
    let (jobs, _) = engine::jobs::list(env, caller, filter).await?;
    let (failures, n_failures) = engine::failures::list(env, caller, id, FAILURES).await?;
    let now = env.clock.now();
    let changes = changes(env, &source);
    let by_type: Vec<String> = counts.iter().map(|(kind, n)| format!("{} {}", number(*n), shown(kind))).collect();
    let facts = [
        ("id", source.id.to_string()),
        ("name", shown(&source.name)),
        ("provider", format!("{}, {}", who(env, &source), read_by(&source))),
        ("account", shown(source.account.as_deref().unwrap_or_default())),
        ("health", format!("{}: {}", health.word, health.what)),
        ("documents", if by_type.is_empty() { "none".into() } else { by_type.join(", ") }),
        ("connected", relative(source.created_at, now)),
        ("synced", source.last_successful_sync_at.map_or_else(|| "never".into(), |at| relative(at, now))),
        (
            "every",
            match changes {
                Some(_) => String::new(), // they say so themselves
                None => cadence::spelled(Duration::try_from_secs_f64(source.sync_every_secs).unwrap_or_default()),
            },
        ),
        ("next sync", next_sync(&source, now).map(|at| relative(at, now)).unwrap_or_default()),
        ("changes", changes.clone().unwrap_or_default()),
        ("told until", until(&source, now).map(|(until, _)| relative(until, now)).unwrap_or_default()),
        ("renewed", until(&source, now).and_then(|(_, at)| Some(relative(at?, now))).unwrap_or_default()),
        ("notice", source.last_notice_at.map(|at| relative(at, now)).unwrap_or_default()),
        (
            "token",
            source
                .token_expires_at
                .map(|at| format!("renewed automatically, next {}", relative(at.max(now), now)))
                .unwrap_or_default(),
        ),
    ];
    for (label, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        println!("{label:10} {fact}");
    }
    if !jobs.is_empty() {
        println!("\nLatest jobs");
        job::print(env, &jobs);
    }
    if !failures.is_empty() {
        println!("\nCould not be read: {} of {}", failures.len(), number(n_failures));
        let row = |failure: &Failure| {
            let is_skipped = failure.skipped_at.is_some();
            vec![
                clipped(&failure.external_id, 40),
                relative(failure.failed_at, now),
                if is_skipped { "skipped".into() } else { format!("{}×", failure.n_failed) },
                clipped(&failure.reason, 70),
            ]
        };
        table::print(&["record", "when", "", "why"], &failures.iter().map(row).collect::<Vec<_>>());
        eprintln!("hint: `tributary source retry {id}` reads them again; `source skip {id} RECORD` leaves one out");
    }
    let events = &events[..events.len().min(EVENTS)];
    if !events.is_empty() {
        println!("\nLately");
        let row = |event: &Event| vec![relative(event.at, now), shown(&event.what)];
        table::print(&["when", "what"], &events.iter().map(row).collect::<Vec<_>>());
    }
    Ok(ExitCode::SUCCESS)
}

fn health(env: &Env, watched: &Watched) -> words::Health {
    words::health(who(env, &watched.source), &watched.source, watched.job.as_ref())
}
