//! Sources and jobs in plain words, for pages, the API and the command line: their condition, the meaning of their codes, and what to do.

pub mod cadence;
pub mod changes;
pub mod facts;

use chrono::{DateTime, Utc};
use connectors::guide::{Advice, by_code};
use domain::{JobKind, JobStatus, SourceStatus, Transport};
use store::jobs::Job;
use store::sources::Source;

use super::Provider;

/// The condition of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    BeingForgotten,
    Reconnect,
    /// A mailbox whose provider should tell of changes and does not. It is asked for them.
    Expired,
    Refused,
    Disconnected,
    Paused,
    Reading,
    Waiting,
    SyncFailed,
    NotReadYet,
    UpToDate,
}

impl Condition {
    pub fn word(self) -> &'static str {
        match self {
            Self::BeingForgotten => "being forgotten",
            Self::Reconnect => "reconnect",
            Self::Expired => "polled",
            Self::Refused => "refused",
            Self::Disconnected => "disconnected",
            Self::Paused => "paused",
            Self::Reading => "reading",
            Self::Waiting => "waiting",
            Self::SyncFailed => "sync failed",
            Self::NotReadYet => "not read yet",
            Self::UpToDate => "up to date",
        }
    }

    /// Whether a person has to act.
    pub fn is_trouble(self) -> bool {
        matches!(self, Self::Reconnect | Self::Refused | Self::SyncFailed)
    }
}

/// The condition of a source, and what a person can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub condition: Condition,
    /// The end of a sentence: without a capital and a full stop.
    pub what: String,
    /// A sentence; empty: nothing.
    pub todo: String,
}

impl Health {
    /// `who` is the source's provider as people call it, `job` the one that waits or runs, else the last one.
    pub fn new(who: &str, source: &Source, job: Option<&Job>, is_being_forgotten: bool) -> Self {
        let is = |condition, what: &str, todo: &str| Self { condition, what: what.to_owned(), todo: todo.to_owned() };
        if is_being_forgotten {
            return is(Condition::BeingForgotten, "everything that came from it is being removed", "");
        }
        if let Some(Trouble { what, todo }) = of_source(who, source) {
            let condition = match source.status {
                SourceStatus::TokenRefreshFailed => Condition::Reconnect,
                SourceStatus::SubscriptionExpired => Condition::Expired,
                _ => Condition::Refused,
            };
            return is(condition, what.trim_end_matches('.'), &todo);
        }
        let is_read = source.last_successful_sync_at.is_some();
        match (source.status, job.map(|job| job.status)) {
            (SourceStatus::Disconnected, _) => is(
                Condition::Disconnected,
                "nothing is read any more; its documents are kept",
                "Connect it again, or forget it.",
            ),
            (SourceStatus::Paused, _) => {
                is(Condition::Paused, "nothing is read until it is resumed", "Resume goes on where it stopped.")
            }
            (_, Some(JobStatus::Running)) if is_read => is(Condition::Reading, "it is being brought up to date", ""),
            (_, Some(JobStatus::Running)) => {
                is(Condition::Reading, &format!("everything that {who} has is read for the first time"), "")
            }
            (_, Some(JobStatus::Pending | JobStatus::Paused)) => {
                is(Condition::Waiting, "a sync waits for its turn", "")
            }
            (_, Some(JobStatus::Failed)) => is(
                Condition::SyncFailed,
                "its last sync was given up; the records read until then are kept",
                "Open its last job to read why, and press Retry there.",
            ),
            _ if is_read => {
                is(Condition::UpToDate, &format!("everything that {who} had at the last sync is stored"), "")
            }
            _ => is(Condition::NotReadYet, "it is connected, and nothing was read to the end yet", ""),
        }
    }
}

/// Whether it is synced automatically.
pub fn is_synced(source: &Source) -> bool {
    source.status.is_synced()
}

/// The time of the next automatic sync; none while there is none. A sync that is due is now.
pub fn next_sync(source: &Source, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    source.next_sync_at.filter(|_| is_synced(source)).map(|at| at.max(now))
}

/// The way in which a source is read.
pub fn read_by(source: &Source) -> &'static str {
    match source.transport {
        Transport::Rest => "by its API",
        Transport::Mcp => "through an MCP server",
        Transport::Fixtures => "sample data that ships with this program",
    }
}

/// The names of the two settings that name our app at a provider; none where accounts are connected by a key alone.
pub fn settings(provider: Provider) -> Option<[&'static str; 2]> {
    provider.oauth.as_ref().map(|oauth| [oauth.client_id.env, oauth.client_secret.env])
}

/// Joins names for a sentence: "a, b or c".
pub fn in_a_row(names: &[&str], joint: &str) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {joint} {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// The extent of a job, in words.
pub fn kind(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Full => "everything",
        JobKind::Delta => "what changed",
        JobKind::Push => "changes that the provider announced",
        JobKind::Backfill => "history",
    }
}

/// The origin of a job.
pub fn asked_by(job: &Job) -> &str {
    match job.requested_by.as_str() {
        "schedule" => "the schedule",
        "connect" => "its connection",
        "notice" => "a notice of its provider",
        "person" => "a person",
        key => key,
    }
}

/// The number of records that a job could not read. Its row counts failed attempts among them.
pub fn records_failed(job: &Job) -> i64 {
    (job.items_failed - i64::from(job.error_count)).max(0)
}

/// A problem, and what a person can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub what: String,
    pub todo: String,
}

impl Trouble {
    fn new(what: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { what: what.into(), todo: todo.into() }
    }
}

/// The reason why a source needs a person; none while it is synced automatically, or while a person stopped it.
pub fn of_source(who: &str, source: &Source) -> Option<Trouble> {
    of_status(who, source.status, source.status_message.as_deref())
}

/// The same by the provider as people call it, the status and its code.
pub fn of_status(who: &str, status: SourceStatus, code: Option<&str>) -> Option<Trouble> {
    match status {
        SourceStatus::Active | SourceStatus::Paused | SourceStatus::Disconnected => None,
        SourceStatus::TokenRefreshFailed => Some(of_token(who, code.unwrap_or_default())),
        SourceStatus::ProviderError => Some(of_refusal(who, code.unwrap_or_default())),
        SourceStatus::SubscriptionExpired => Some(Trouble::new(
            format!(
                "{who} does not tell us of changes{}, so we ask for them now and then.",
                bracketed(code.unwrap_or_default())
            ),
            "It is asked to tell us again by itself. If that lasts, look whether it can reach this server's address.",
        )),
    }
}

/// The provider's own advice on the code for which a source needs a person. None: it has no word for it.
pub fn advice(provider: Provider, source: &Source) -> Option<&'static Advice> {
    let code = source.status_message.as_deref()?.rsplit(": ").next()?;
    by_code(provider.guide.refusals, code)
}

/// The reason why a job failed; none when it did not.
pub fn of_job(who: &str, job: &Job) -> Option<Trouble> {
    let code = job.error_message.as_deref()?;
    Some(match code {
        "max_retries_exceeded" => Trouble::new(
            "It failed too often in a row and was given up. The records read until then are kept.",
            "Read the troubles below, then press Retry: it goes on where it stopped.",
        ),
        code if code.starts_with("forbidden") => of_refusal(who, code),
        code => of_token(who, code),
    })
}

fn of_token(who: &str, code: &str) -> Trouble {
    const AGAIN: &str = "Press Reconnect and allow it again; nothing read so far is lost.";
    match code.split_once(": ").map_or((code, ""), |(code, detail)| (code, detail)) {
        ("key_refused", _) => Trouble::new(
            format!("{who} no longer accepts the key: it was replaced, or its app was removed there."),
            format!(
                "Copy the key that is good now from {who} and enter it on the source's page; nothing read so far is lost."
            ),
        ),
        ("refresh_outcome_unknown", _) => Trouble::new(
            format!(
                "The last renewal of our token broke off, and {who} accepts neither the old token nor tells us the new one."
            ),
            AGAIN,
        ),
        ("unauthorized_after_refresh", _) => Trouble::new(
            format!("{who} refuses our token although it had just been renewed."),
            format!(
                "Press Reconnect and allow it again; if it happens again, check at {who} that the account may still use our app. Nothing read so far is lost."
            ),
        ),
        ("refresh_token_invalid", detail) => {
            Trouble::new(format!("{who} no longer accepts our token{}.", bracketed(detail)), AGAIN)
        }
        _ => Trouble::new(format!("{who} no longer accepts our token{}.", bracketed(code)), AGAIN),
    }
}

fn of_refusal(who: &str, code: &str) -> Trouble {
    if let Some(kind) = code.strip_prefix("failing: ") {
        let what = match kind {
            "token" | "unauthorized" => "does not renew or accept our token",
            "unreadable" => "gives answers that cannot be read",
            "cursor" => "loses our place again and again",
            _ => "does not answer as it should",
        };
        return Trouble::new(
            format!("{who} {what}: several syncs in a row have failed."),
            "It is tried again by itself, ever more rarely. The last job says more; everything read so far is kept.",
        );
    }
    match code.strip_prefix("forbidden").map(|rest| rest.trim_start_matches(": ")) {
        Some(code) if code.starts_with("mcp_") => of_mcp(who, code),
        Some(code) => Trouble::new(
            format!("{who} accepts our token but refuses what we ask for{}.", bracketed(code)),
            format!(
                "Give the app or the account the missing permission at {who}, then press Sync now. Everything read so far is kept."
            ),
        ),
        None => Trouble::new(
            format!("{who} refuses what we ask for{}.", bracketed(code)),
            "Press Sync now to try again; everything read so far is kept.",
        ),
    }
}

/// No permission is missing: its MCP server is another than the one we know how to ask.
fn of_mcp(who: &str, code: &str) -> Trouble {
    let other = "Everything read so far is kept. To go on, connect the same account again by its API (Connect, not Reconnect), or name an MCP server that has it.";
    match code.split_once(": ").map_or((code, ""), |(code, tool)| (code, tool)) {
        ("mcp_tool_missing", tool) => {
            Trouble::new(format!("{who}'s MCP server has no tool that we could read it by{}.", bracketed(tool)), other)
        }
        ("mcp_schema_changed", tool) => Trouble::new(
            format!("{who}'s MCP server wants its tool asked in another way than we know{}.", bracketed(tool)),
            other,
        ),
        _ => Trouble::new(
            format!("{who}'s MCP server refuses what we ask for{}.", bracketed(code)),
            "Press Sync now to try again; everything read so far is kept.",
        ),
    }
}

fn bracketed(code: &str) -> String {
    if code.is_empty() { String::new() } else { format!(" ({code})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_in_words_with_what_to_do() {
        let again = "Press Reconnect and allow it again; nothing read so far is lost.";
        let token = |code| of_status("HubSpot", SourceStatus::TokenRefreshFailed, code).expect("a trouble");
        assert_eq!(
            token(Some("refresh_token_invalid: invalid_grant")),
            Trouble::new("HubSpot no longer accepts our token (invalid_grant).", again)
        );
        assert_eq!(token(None), Trouble::new("HubSpot no longer accepts our token.", again));
        assert_eq!(token(Some("new_code")), Trouble::new("HubSpot no longer accepts our token (new_code).", again));
        for code in ["refresh_outcome_unknown", "unauthorized_after_refresh"] {
            let Trouble { what, todo } = token(Some(code));
            assert!(!what.contains('_') && todo.starts_with("Press Reconnect"), "{what} {todo}");
        }
        let Trouble { what, todo } = token(Some("key_refused"));
        assert!(what.contains("the key") && todo.contains("enter it on the source's page"), "{what} {todo}");
    }

    #[test]
    fn a_refusal_names_the_code_and_where_to_go() {
        let refused = |code| of_status("QuickBooks", SourceStatus::ProviderError, code).expect("a trouble");
        let Trouble { what, todo } = refused(Some("forbidden: MISSING_SCOPES"));
        assert_eq!(what, "QuickBooks accepts our token but refuses what we ask for (MISSING_SCOPES).");
        assert!(todo.contains("permission at QuickBooks") && todo.contains("Sync now"), "{todo}");
        assert_eq!(refused(None).what, "QuickBooks refuses what we ask for.");
    }

    #[test]
    fn a_mailbox_that_keeps_failing_or_is_not_told_of_goes_on_by_itself() {
        let of = |status, code| of_status("Outlook", status, Some(code)).expect("a trouble");
        let failing = of(SourceStatus::ProviderError, "failing: provider");
        assert_eq!(failing.what, "Outlook does not answer as it should: several syncs in a row have failed.");
        assert!(failing.todo.contains("by itself") && !failing.todo.contains("permission"), "{}", failing.todo);
        let polled = of(SourceStatus::SubscriptionExpired, "removed");
        assert_eq!(polled.what, "Outlook does not tell us of changes (removed), so we ask for them now and then.");
        assert!(!polled.todo.contains("Reconnect") && !Condition::Expired.is_trouble(), "{}", polled.todo);
    }

    #[test]
    fn a_server_that_speaks_otherwise_is_no_missing_permission() {
        let refused = |code| of_status("HubSpot", SourceStatus::ProviderError, Some(code)).expect("a trouble");
        let Trouble { what, todo } = refused("forbidden: mcp_tool_missing: hubspot-list-objects");
        assert_eq!(what, "HubSpot's MCP server has no tool that we could read it by (hubspot-list-objects).");
        assert!(todo.contains("by its API") && !todo.contains("permission"), "{todo}");
        assert!(refused("forbidden: mcp_schema_changed: hubspot-list-objects").what.contains("in another way"));
        let Trouble { what, todo } = refused("forbidden: mcp_error: -32602");
        assert!(what.contains("(mcp_error: -32602)") && todo.starts_with("Press Sync now"), "{what} {todo}");
    }

    #[test]
    fn names_are_joined_as_in_a_sentence() {
        for (names, expected) in
            [(&[][..], ""), (&["a"], "a"), (&["a", "b"], "a or b"), (&["a", "b", "c"], "a, b or c")]
        {
            assert_eq!(in_a_row(names, "or"), expected);
        }
    }

    #[test]
    fn what_a_person_did_is_no_trouble() {
        for status in [SourceStatus::Active, SourceStatus::Paused, SourceStatus::Disconnected] {
            assert_eq!(of_status("HubSpot", status, Some("left over")), None);
        }
    }
}
