//! Describes sources and jobs in the words of [`engine::pull::words`], but shorter.

use domain::JobStatus;
use domain::shown::{counted, number};
use engine::pull::words::{self, Condition, of_job};
use store::jobs::Job;
use store::queue::MOST_COUNTED;
use store::sources::Source;

/// A source's health in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub word: &'static str,
    pub what: String,
    /// Whether a person has to act.
    pub is_trouble: bool,
}

/// `who` is the provider as people call it, `job` the one that waits or runs, else the last one.
pub fn health(who: &str, source: &Source, job: Option<&Job>) -> Health {
    let words::Health { condition, what, .. } = words::Health::new(who, source, job, false);
    let what = match (condition, job) {
        (Condition::Reading | Condition::Waiting, Some(job)) => state(who, job),
        _ => what,
    };
    let left_out = match source.n_failures {
        0 => String::new(),
        1 => "; 1 record could not be read".into(),
        n => format!("; {} records could not be read", counted(n, MOST_COUNTED)),
    };
    let is_trouble = condition.is_trouble() || source.n_failures > 0;
    Health { word: condition.word(), what: what + &left_out, is_trouble }
}

/// Says what a job does, why it waits, or what became of it.
pub fn state(who: &str, job: &Job) -> String {
    let said = job.step.as_deref().unwrap_or_default();
    match job.status {
        JobStatus::Pending if said.is_empty() => "waits for a worker".to_owned(),
        JobStatus::Pending => format!("waits: {said}"),
        JobStatus::Running if said.is_empty() => "runs".to_owned(),
        JobStatus::Running => said.to_owned(),
        JobStatus::Paused if said.is_empty() => "paused".to_owned(),
        JobStatus::Paused => format!("paused: {said}"),
        JobStatus::Completed => "done".to_owned(),
        JobStatus::Cancelled => "cancelled; its documents are kept".to_owned(),
        JobStatus::Failed => {
            of_job(who, job).map_or_else(|| "failed".to_owned(), |trouble| format!("failed: {}", trouble.what))
        }
    }
}

/// "12 new, 3 changed, 600 unchanged", without zeros.
pub fn brought(job: &Job) -> String {
    let parts = [
        (job.n_created, "new"),
        (job.n_updated, "changed"),
        (job.n_unchanged, "unchanged"),
        (job.n_deleted, "deleted"),
        (job.n_kept_out, "kept out, as a person deleted them"),
        (words::records_failed(job), "could not be read"),
        (job.error_count.into(), if job.error_count == 1 { "failed attempt" } else { "failed attempts" }),
    ];
    let said: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{} {word}", number(*n))).collect();
    if said.is_empty() { "nothing".to_owned() } else { said.join(", ") }
}

#[cfg(test)]
pub(super) mod tests {
    use chrono::DateTime;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    pub fn source(status: &str) -> Source {
        let at = DateTime::UNIX_EPOCH;
        Source {
            id: Uuid::nil(),
            tenant_id: Uuid::nil(),
            provider: "hubspot".into(),
            name: "Harrow Ridge".into(),
            account: Some("24317905".into()),
            status: status.parse().expect("a status"),
            status_message: None,
            status_at: at,
            transport: domain::Transport::Rest,
            token_expires_at: None,
            cursors: None,
            sync_every_secs: 86_400.0,
            next_sync_at: None,
            last_successful_sync_at: Some(at),
            created_at: at,
            subscription_expires_at: None,
            subscription_due_at: None,
            subscription_trouble: None,
            provider_subscription_id: None,
            last_notice_at: None,
            n_documents: 3,
            n_failures: 0,
            live_job: None,
        }
    }

    fn job(status: &str, step: Option<&str>, error: Option<&str>) -> Job {
        let at = DateTime::UNIX_EPOCH;
        Job {
            id: Uuid::nil(),
            tenant_id: Uuid::nil(),
            source_id: Uuid::nil(),
            source_name: "Harrow Ridge".into(),
            source_provider: "hubspot".into(),
            kind: domain::JobKind::Full,
            status: status.parse().expect("a status"),
            requested_by: "person".into(),
            step: step.map(Into::into),
            note: None,
            items_processed: 0,
            items_failed: 0,
            items_total: None,
            n_created: 0,
            n_updated: 0,
            n_unchanged: 0,
            n_deleted: 0,
            n_kept_out: 0,
            checkpoint_data: json!({}),
            error_message: error.map(Into::into),
            error_details: json!([]),
            error_count: 0,
            embed_calls: 0,
            embed_texts: 0,
            embed_tokens: 0,
            cost_micros: 0,
            last_heartbeat: None,
            started_at: None,
            finished_at: None,
            created_at: at,
            updated_at: at,
        }
    }

    #[test]
    fn a_source_says_how_it_is() {
        let said = |source: &Source, job: Option<&Job>| {
            let Health { word, what, is_trouble } = health("HubSpot", source, job);
            format!("{word}: {what}{}", if is_trouble { " !" } else { "" })
        };
        let revoked = Source {
            status_message: Some("refresh_token_invalid: invalid_grant".into()),
            ..source("token_refresh_failed")
        };
        let waiting = job("pending", Some("HubSpot asked us to wait 10 s"), None);
        for (source, job, expected) in [
            (source("active"), None, "up to date: everything that HubSpot had at the last sync is stored"),
            (
                Source { last_successful_sync_at: None, ..source("active") },
                None,
                "not read yet: it is connected, and nothing was read to the end yet",
            ),
            (source("active"), Some(waiting), "waiting: waits: HubSpot asked us to wait 10 s"),
            (
                Source { n_failures: 1, ..source("active") },
                None,
                "up to date: everything that HubSpot had at the last sync is stored; 1 record could not be read !",
            ),
            (source("paused"), None, "paused: nothing is read until it is resumed"),
            (revoked, None, "reconnect: HubSpot no longer accepts our token (invalid_grant) !"),
        ] {
            assert_eq!(said(&source, job.as_ref()), expected);
        }
    }

    #[test]
    fn a_job_says_what_it_does_and_what_became_of_it() {
        for (given, expected) in [
            (job("pending", None, None), "waits for a worker"),
            (job("pending", Some("HubSpot asked us to wait 10 s"), None), "waits: HubSpot asked us to wait 10 s"),
            (job("running", Some("reads what changed at HubSpot"), None), "reads what changed at HubSpot"),
            (
                job("failed", None, Some("refresh_token_invalid: invalid_grant")),
                "failed: HubSpot no longer accepts our token (invalid_grant).",
            ),
        ] {
            assert_eq!(state("HubSpot", &given), expected);
        }
        let busy = Job { n_created: 12, n_unchanged: 600, n_deleted: 1, ..job("completed", None, None) };
        assert_eq!(brought(&busy), "12 new, 600 unchanged, 1 deleted");
        assert_eq!(brought(&job("completed", None, None)), "nothing");
        let hurt = Job { items_failed: 3, error_count: 1, ..job("completed", None, None) };
        assert_eq!(brought(&hurt), "2 could not be read, 1 failed attempt");
    }
}
