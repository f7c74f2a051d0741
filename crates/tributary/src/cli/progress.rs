//! Shows a job while it runs, on stderr: a bar on a terminal, else a line now and then. To stop looking does not stop the job.

use std::collections::VecDeque;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use domain::shown::{clipped, plural, shown};
use domain::{Caller, JobId, JobKind, JobStatus, SourceId};
use engine::{Env, jobs, sources, workers};
use store::jobs::Job;
use store::workers::Health;

use super::{hinted, print_json, words};

/// The bar's width in characters.
const WIDTH: usize = 20;
/// The rate is measured over so long.
const WINDOW: Duration = Duration::from_secs(5);
/// After waiting so long for a worker, we say whether there is one.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shows the job until it ends or is paused. Ctrl-C ends only the display.
pub async fn watch(env: &Env, caller: &Caller, id: JobId, is_json: bool) -> anyhow::Result<ExitCode> {
    let is_live = std::io::stderr().is_terminal();
    let pause = if is_live { Duration::from_millis(200) } else { Duration::from_secs(2) };
    let begun = Instant::now();
    let (mut seen, mut last) = (VecDeque::new(), String::new());
    let mut total = None;
    let mut is_warned = false;
    for nth in 0.. {
        let job = jobs::get(env, caller, id).await;
        let job = job.map_err(|error| hinted(error, || "the job is gone: its source was forgotten".into()))?;
        if nth == 0 {
            total = expected(env, caller, &job).await?;
        }
        let who = env.providers.label(&job.source_provider);
        if job.status.is_over() || job.status == JobStatus::Paused {
            if is_live {
                eprint!("\r\x1b[K");
            }
            return told(env, job, is_json);
        }
        let now = Instant::now();
        seen.push_back((now, job.items_processed));
        while seen.front().is_some_and(|(at, _)| now - *at > WINDOW) && seen.len() > 2 {
            seen.pop_front();
        }
        let elapsed =
            job.started_at.map_or_else(|| begun.elapsed(), |at| (env.clock.now() - at).to_std().unwrap_or_default());
        if is_live {
            let bar = bar(job.items_processed, job.items_total.or(total), nth);
            eprint!("\r{}\x1b[K", clipped(&format!("{bar} {}", line(who, &job, rate(&seen), elapsed)), 78));
            std::io::stderr().flush()?;
        } else {
            let said = line(who, &job, rate(&seen), elapsed);
            if said != last {
                eprintln!("{said}");
                last = said;
            }
        }
        if !is_warned && job.started_at.is_none() && begun.elapsed() > PATIENCE && !has_worker(env).await? {
            is_warned = true;
            eprintln!(
                "{}no worker is running; `tributary up` or `tributary worker` starts one",
                if is_live { "\n" } else { "" }
            );
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = tokio::signal::ctrl_c() => {
                eprintln!("\nthe sync goes on; `tributary job show {id} --watch` shows it again");
                return Ok(ExitCode::from(130));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Estimates the number of records. Providers rarely report it, so for a full pass it is the present number of documents.
async fn expected(env: &Env, caller: &Caller, job: &Job) -> anyhow::Result<Option<i64>> {
    if job.kind != JobKind::Full {
        return Ok(None);
    }
    let source = sources::get(env, caller, SourceId(job.source_id)).await?;
    Ok(source.last_successful_sync_at.map(|_| source.n_documents))
}

async fn has_worker(env: &Env) -> anyhow::Result<bool> {
    let workers = workers::list(env).await?;
    Ok(workers.iter().any(|(worker, _)| !matches!(worker.health(), Health::Dead | Health::Stopped)))
}

/// Prints what became of it.
fn told(env: &Env, job: Job, is_json: bool) -> anyhow::Result<ExitCode> {
    let is_well = job.status == JobStatus::Completed;
    if is_json {
        print_json(&web::api::jobs::Job::new(env, job))?;
    } else {
        let who = env.providers.label(&job.source_provider);
        println!("{}: {}", shown(&words::state(who, &job)), words::brought(&job));
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the recent number of records per second.
fn rate(seen: &VecDeque<(Instant, i64)>) -> f64 {
    let (Some((from, before)), Some((to, after))) = (seen.front(), seen.back()) else { return 0.0 };
    let secs = (*to - *from).as_secs_f64();
    if secs > 0.0 { (after - before) as f64 / secs } else { 0.0 }
}

/// "1,200 records, 412/s, 0:12, reads everything that Acme has"
fn line(who: &str, job: &Job, rate: f64, elapsed: Duration) -> String {
    let secs = elapsed.as_secs();
    let clock = format!("{}:{:02}", secs / 60, secs % 60);
    let records = plural(job.items_processed, "record", "records");
    format!("{records}, {rate:.0}/s, {clock}, {}", shown(&words::state(who, job)))
}

/// Draws the bar: the share that is done if it can be estimated, otherwise a moving mark.
fn bar(done: i64, total: Option<i64>, nth: usize) -> String {
    let cell: Box<dyn Fn(usize) -> bool> = match total.filter(|total| *total > 0) {
        Some(total) => {
            let full = (done.clamp(0, total) as f64 / total as f64 * WIDTH as f64) as usize;
            Box::new(move |at| at < full)
        }
        None => {
            let head = nth % (2 * (WIDTH - 3));
            let head = head.min(2 * (WIDTH - 3) - head);
            Box::new(move |at| (head..head + 3).contains(&at))
        }
    };
    let cells: String = (0..WIDTH).map(|at| if cell(at) { '#' } else { '-' }).collect();
    format!("[{cells}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_shows_how_far_it_is_or_that_it_moves() {
        assert_eq!(bar(50, Some(100), 0), "[##########----------]");
        assert_eq!(bar(250, Some(100), 0), "[####################]");
        assert_eq!(bar(50, None, 0), "[###-----------------]");
        assert_eq!(bar(50, Some(0), 17), "[-----------------###]");
        assert!((0..200).all(|nth| bar(0, None, nth).matches('#').count() == 3));
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let now = Instant::now();
        assert_eq!(rate(&VecDeque::from([(now, 100)])), 0.0);
        assert_eq!(rate(&VecDeque::from([(now, 100), (now + Duration::from_secs(2), 500)])), 200.0);
    }
}
