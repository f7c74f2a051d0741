//! Sources as one looks at them: all of them, or one.

use std::process::ExitCode;
use std::time::Duration;

use domain::shown::{clipped, number, relative, shown};
use domain::{JobId, SourceId, TenantId};
use engine::Env;
use engine::pull::words::cadence;
use engine::pull::words::{next_sync, read_by};
use serde_json::{Value, json};
use store::failures::Failure;
use store::jobs::{Filter, Job};
use store::sources::{self, Event, Source};

use super::super::{job, table, words};
use super::find::found;

/// So many of what could not be read are shown.
const FAILURES: i64 = 20;

/// The source's provider, as people call it.
pub fn who<'a>(env: &Env, source: &'a Source) -> &'a str {
    env.providers.label(&source.provider)
}

pub async fn list(env: &Env, tenant_id: TenantId, is_json: bool) -> anyhow::Result<ExitCode> {
    let mut conn = env.db.acquire().await?;
    let listed = sources::list(&mut conn, tenant_id, None).await?;
    let mut health = Vec::new();
    for source in &listed {
        health.push(words::health(who(env, source), source, latest(&mut conn, source).await?.as_ref()));
    }
    if is_json {
        let both = listed.iter().zip(&health);
        let listed = both.map(|(source, health)| as_json(source, health)).collect::<anyhow::Result<Vec<_>>>()?;
        println!("{}", serde_json::to_string_pretty(&listed)?);
        return Ok(ExitCode::SUCCESS);
    }
    if listed.is_empty() {
        let names: Vec<&str> = env.providers.all().iter().map(|provider| provider.name).collect();
        eprintln!("No source is connected yet: `tributary source connect PROVIDER`, one of {}.", names.join(", "));
        return Ok(ExitCode::SUCCESS);
    }
    let now = env.clock.now();
    let row = |(source, health): (&Source, &words::Health)| {
        vec![
            source.id.to_string(),
            clipped(&source.name, 40),
            who(env, source).to_owned(),
            health.word.to_owned(),
            number(source.n_documents),
            source.last_successful_sync_at.map_or_else(|| "never".into(), |at| relative(at, now)),
            next_sync(source, now).map_or_else(String::new, |at| relative(at, now)),
        ]
    };
    table::print(
        &["id", "name", "provider", "health", "documents", "synced", "next"],
        &listed.iter().zip(&health).map(row).collect::<Vec<_>>(),
    );
    for (source, health) in listed.iter().zip(&health).filter(|(_, health)| health.is_trouble) {
        let todo = if health.word == "reconnect" { "reconnect" } else { "show" };
        eprintln!("\n{}: {}\nhint: `tributary source {todo} {}`", shown(&source.name), health.what, source.id);
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn show(env: &Env, tenant_id: TenantId, text: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    let source = found(env, tenant_id, text).await?;
    let id = SourceId(source.id);
    let mut conn = env.db.acquire().await?;
    let counts = sources::counts(&mut conn, tenant_id, id).await?;
    let filter = Filter { source_id: Some(id), limit: 5, ..Filter::default() };
    let jobs = store::jobs::list(&mut conn, tenant_id, filter).await?;
    let health = words::health(who(env, &source), &source, latest(&mut conn, &source).await?.as_ref());
    let failures = store::failures::list(&mut conn, tenant_id, id, FAILURES).await?;
    let n_failures = store::failures::count(&mut conn, tenant_id, id).await?;
    let events = sources::events(&mut conn, tenant_id, Some(id), 10).await?;
    if is_json {
        let mut value = as_json(&source, &health)?;
        value["counts"] =
            counts.into_iter().map(|(kind, n)| (kind, json!(n))).collect::<serde_json::Map<_, _>>().into();
        value["jobs"] = serde_json::to_value(&jobs)?;
        value["n_failures_in_all"] = json!(n_failures);
        value["failures"] = serde_json::to_value(&failures)?;
        value["events"] = serde_json::to_value(&events)?;
        println!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(ExitCode::SUCCESS);
    }
    let now = env.clock.now();
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
        ("every", cadence::spelled(Duration::try_from_secs_f64(source.sync_every_secs).unwrap_or_default())),
        ("next sync", next_sync(&source, now).map(|at| relative(at, now)).unwrap_or_default()),
        (
            "token",
            source
                .token_expires_at
                .map(|at| format!("renewed by itself, next {}", relative(at.max(now), now)))
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
    if !events.is_empty() {
        println!("\nLately");
        let row = |event: &Event| vec![relative(event.at, now), shown(&event.what)];
        table::print(&["when", "what"], &events.iter().map(row).collect::<Vec<_>>());
    }
    Ok(ExitCode::SUCCESS)
}

/// The job that waits or runs, else the last one.
async fn latest(conn: &mut store::PgConnection, source: &Source) -> anyhow::Result<Option<Job>> {
    let (tenant_id, source_id) = (TenantId(source.tenant_id), Some(SourceId(source.id)));
    if let Some(id) = source.live_job {
        return Ok(store::jobs::get(conn, tenant_id, JobId(id)).await?);
    }
    Ok(store::jobs::list(conn, tenant_id, Filter { source_id, limit: 1, ..Filter::default() }).await?.pop())
}

fn as_json(source: &Source, health: &words::Health) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(source)?;
    value["health"] = json!({ "word": health.word, "what": health.what, "is_trouble": health.is_trouble });
    Ok(value)
}
