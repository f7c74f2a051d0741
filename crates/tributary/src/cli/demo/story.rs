//! The story: what goes wrong at providers and in workers, and how it rights itself. One round takes a little over two minutes.

use std::time::{Duration, Instant};

use domain::{JobKind, JobStatus, SourceStatus};
use engine::pull::words::in_a_row;
use fakes::{Manner, RetryAfter};
use serde_json::json;
use store::jobs::Job;

use super::stage::Stage;
use super::workers::Workers;

/// The providers that the chapters are about.
const HUBSPOT: &str = "hubspot";
const DRIVE: &str = "google_drive";
const QUICKBOOKS: &str = "quickbooks";
const THREE: [&str; 3] = [HUBSPOT, DRIVE, QUICKBOOKS];
/// Between two chapters, to look around.
const PAUSE: Duration = Duration::from_secs(6);
/// No sync of so few records takes longer, unless something is wrong with the demonstration itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// The records that this round made at the providers, to be deleted at its end.
struct Made {
    deal: String,
    file: String,
    invoice: String,
}

pub async fn tell(stage: &Stage, workers: &mut Workers) -> anyhow::Result<()> {
    played(stage, first_syncs(stage).await);
    for round in 1.. {
        pause(workers).await?;
        let made = played(stage, changes(stage, round).await);
        pause(workers).await?;
        played(stage, asked_to_wait(stage).await);
        pause(workers).await?;
        played(stage, broken(stage).await);
        pause(workers).await?;
        played(stage, revoked(stage, round).await);
        pause(workers).await?;
        played(stage, killed(stage, workers).await);
        pause(workers).await?;
        if let Some(made) = made {
            played(stage, deleted(stage, made).await);
            pause(workers).await?;
        }
        stage.say("That was the round; it begins again, until Ctrl-C", "/");
    }
    Ok(())
}

/// A person may pause or forget the source of a chapter on the pages: then the chapter is left out, and the next one begins.
pub fn played<T>(stage: &Stage, went: anyhow::Result<T>) -> Option<T> {
    went.inspect_err(|error| {
        stage.fakes.behave();
        stage.say(&format!("A chapter is left out: {error:#}"), "/connections/accounts");
    })
    .ok()
}

async fn pause(workers: &mut Workers) -> anyhow::Result<()> {
    tokio::time::sleep(PAUSE).await;
    workers.replace_ended()
}

/// They began when the sources were connected.
async fn first_syncs(stage: &Stage) -> anyhow::Result<()> {
    let labels: Vec<&str> = stage.env.providers.all().iter().map(|provider| provider.label).collect();
    let words = format!("{} are connected; everything they have is read", in_a_row(&labels, "and"));
    stage.say(&words, "/connections/accounts");
    for provider in stage.providers() {
        stage.quiet(provider, PATIENCE).await?;
        let source = stage.source(provider).await?;
        let words = format!(
            "{} is up to date: {} documents, found by word and by meaning",
            stage.env.providers.label(provider),
            source.n_documents
        );
        stage.say(&words, "/connections/accounts");
    }
    Ok(())
}

async fn changes(stage: &Stage, round: usize) -> anyhow::Result<Made> {
    let fakes = &stage.fakes;
    let deal = fakes.hubspot().put(
        "deals",
        json!({ "dealname": format!("Bayview: stand-by loader, week {round}"), "amount": "2800", "dealstage": "presentationscheduled",
            "pipeline": "default", "closedate": "2027-03-31T00:00:00Z" }),
    );
    fakes.hubspot().associate("deals", &deal, "companies", "58");
    let title = ["Operations manager", "Head of operations"][round % 2];
    fakes.hubspot().patch("contacts", "51", json!({ "jobtitle": title }));
    let invoice = fakes.quickbooks().put(
        "Invoice",
        json!({ "DocNumber": (2_000 + round).to_string(), "CustomerRef": { "value": "3", "name": "Stonebrook Excavating" },
            "TotalAmt": 1_450.0, "Balance": 1_450.0, "TxnDate": "2026-11-15", "DueDate": "2026-12-15" }),
    );
    let file = fakes.drive().put_doc(
        &format!("Site visit {round}: Juniper Ridge Resort"),
        "# Juniper Ridge Resort\n\nTwo aerial lifts for the chair lift towers, from the thaw on. They ask for an operator in the first week.\n",
    );
    let mut brought = 0;
    for provider in THREE {
        stage.quiet(provider, PATIENCE).await?;
        let id = stage.sync(provider, None).await?;
        let job = stage.ended(id, PATIENCE).await?;
        brought += job.n_created + job.n_updated;
    }
    let words = format!(
        "A deal, a job title, an invoice and a document changed at their providers: {brought} records were read anew, and only their texts were embedded"
    );
    stage.say(&words, "/connections/accounts");
    Ok(Made { deal, file, invoice })
}

/// 429 with Retry-After.
async fn asked_to_wait(stage: &Stage) -> anyhow::Result<()> {
    stage.quiet(HUBSPOT, PATIENCE).await?;
    stage.fakes.next("/hubspot", Manner::RateLimited { retry_after: RetryAfter::Seconds(10) });
    let begun = Instant::now();
    let id = stage.sync(HUBSPOT, None).await?;
    stage.job_when(id, PATIENCE, |job| has_trouble(job) || job.status.is_over()).await?;
    stage.say("HubSpot asks us to wait 10 s; its sync continues automatically", "/connections/accounts");
    let job = stage.ended(id, PATIENCE).await?;
    stage.say(
        &format!(
            "HubSpot's sync went on {} s later and is {}; the wait cost no attempt",
            begun.elapsed().as_secs(),
            outcome(&job)
        ),
        "/connections/accounts",
    );
    Ok(())
}

/// A spell of 5xx. Shorter than three attempts, or QuickBooks would be left alone for a minute.
async fn broken(stage: &Stage) -> anyhow::Result<()> {
    stage.quiet(QUICKBOOKS, PATIENCE).await?;
    stage.fakes.always("/quickbooks", Some(Manner::Status(503)));
    let id = stage.sync(QUICKBOOKS, None).await?;
    stage.job_when(id, PATIENCE, |job| has_trouble(job) || job.status.is_over()).await?;
    stage.say(
        "QuickBooks answers with errors (503); it is retried automatically, each time a little later",
        "/connections/accounts",
    );
    stage.job_when(id, Duration::from_secs(4), |job| job.error_count >= 2).await?;
    stage.fakes.always("/quickbooks", None);
    let job = stage.ended(id, PATIENCE).await?;
    let words =
        format!("QuickBooks is well again, and its sync is {} at attempt {}", outcome(&job), job.error_count + 1);
    stage.say(&words, "/connections/accounts");
    Ok(())
}

/// A person withdraws the consent at Google.
async fn revoked(stage: &Stage, round: usize) -> anyhow::Result<()> {
    stage.quiet(DRIVE, PATIENCE).await?;
    stage.fakes.revoke(fakes::DRIVE);
    let id = stage.sync(DRIVE, None).await?;
    stage.ended(id, PATIENCE).await?;
    if stage.source(DRIVE).await?.status != SourceStatus::TokenRefreshFailed {
        stage.say("Google Drive still takes our token", "/connections/accounts"); // somebody at the pages was faster
        return Ok(());
    }
    stage.say(
        "Google Drive no longer accepts our token: the source shows Reconnect, and all it brought is still found",
        "/connections/accounts",
    );
    let file = stage.fakes.drive().put_doc(
        &format!("Written while nobody could read it, {round}"),
        "The certificate of insurance for Bayview is with Priya; the copy in the truck is last year's.\n",
    );
    tokio::time::sleep(Duration::from_secs(20)).await;
    stage.reconnect(DRIVE).await?;
    stage.say(
        "Somebody pressed Reconnect; the sync goes on where it stopped, and finds what was written meanwhile",
        "/connections/accounts",
    );
    stage.ended(id, PATIENCE).await?;
    stage.quiet(DRIVE, PATIENCE).await?;
    stage.fakes.drive().trash(&file, true);
    Ok(())
}

/// kill -9 in the middle of a pass over everything.
async fn killed(stage: &Stage, workers: &mut Workers) -> anyhow::Result<()> {
    stage.quiet(HUBSPOT, PATIENCE).await?;
    stage.fakes.set_latency("/hubspot", Duration::from_millis(700));
    let id = stage.sync(HUBSPOT, Some(JobKind::Full)).await?;
    let (job, _) = stage.job_when(id, PATIENCE, |job| job.items_processed > 150 || job.status.is_over()).await?;
    let was_killed = match stage.holder(id).await? {
        Some(pid) => workers.kill(pid).await?,
        None => false,
    };
    stage.fakes.set_latency("/hubspot", Duration::ZERO);
    if !was_killed {
        stage.say("No worker was in the middle of it this time", "/system/workers");
        return Ok(());
    }
    let begun = Instant::now();
    let words =
        format!("A worker was killed (kill -9) in the middle of HubSpot's sync, {} records in", job.items_processed);
    stage.say(&words, "/system/workers");
    workers.start()?;
    let job = stage.ended(id, PATIENCE).await?;
    let there: usize = ["contacts", "companies", "deals"].iter().map(|kind| stage.fakes.hubspot().count(kind)).sum();
    let here = stage.held(HUBSPOT, "hubspot.").await?;
    let words = format!(
        "Another worker took over from the last page and is {} after {} s: {there} records at HubSpot, {here} here",
        outcome(&job),
        begun.elapsed().as_secs()
    );
    stage.say(&words, "/system/workers");
    Ok(())
}

async fn deleted(stage: &Stage, made: Made) -> anyhow::Result<()> {
    stage.fakes.hubspot().archive("deals", &made.deal);
    stage.fakes.drive().trash(&made.file, true);
    stage.fakes.quickbooks().delete("Invoice", &made.invoice);
    let mut gone = 0;
    for provider in THREE {
        stage.quiet(provider, PATIENCE).await?;
        let id = stage.sync(provider, None).await?;
        gone += stage.ended(id, PATIENCE).await?.n_deleted;
    }
    let words = format!(
        "{gone} records were deleted at their providers, and search no longer finds them; what is known of clients has followed"
    );
    stage.say(&words, "/clients");
    Ok(())
}

fn has_trouble(job: &Job) -> bool {
    job.error_details.as_array().is_some_and(|troubles| !troubles.is_empty())
}

fn outcome(job: &Job) -> &'static str {
    match job.status {
        JobStatus::Completed => "done",
        JobStatus::Failed => "given up",
        JobStatus::Cancelled => "cancelled",
        _ => "not done yet",
    }
}
