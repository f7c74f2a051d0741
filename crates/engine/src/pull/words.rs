//! What the codes of sources and jobs mean, in plain words, with what to do about it.

use domain::{Provider, SourceStatus};
use store::jobs::Job;
use store::sources::Source;

/// What is wrong, and what a person can do.
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

/// Why a source needs a person; none while it goes on by itself, or while a person stopped it.
pub fn of_source(source: &Source) -> Option<Trouble> {
    of_status(source.label(), source.status(), source.status_message.as_deref())
}

/// The same of what is known: whom it is at, its status and that status's code.
pub fn of_status(who: &str, status: SourceStatus, code: Option<&str>) -> Option<Trouble> {
    match status {
        SourceStatus::Active | SourceStatus::Paused | SourceStatus::Disconnected => None,
        SourceStatus::TokenRefreshFailed => Some(of_token(who, code.unwrap_or_default())),
        SourceStatus::ProviderError => Some(of_refusal(who, code.unwrap_or_default())),
        SourceStatus::SubscriptionExpired => Some(Trouble::new(
            format!("{who} no longer tells us of changes{}.", bracketed(code.unwrap_or_default())),
            "Press Reconnect; what changed meanwhile is read then.",
        )),
    }
}

/// Why a job failed; none when it did not.
pub fn of_job(job: &Job) -> Option<Trouble> {
    let code = job.error_message.as_deref()?;
    let who = job.source_provider.parse::<Provider>().map_or("the provider", Provider::label);
    Some(match code {
        "max_retries_exceeded" => Trouble::new(
            "It failed too often in a row and was given up. What it read until then is kept.",
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
    match code.strip_prefix("forbidden") {
        Some(rest) => Trouble::new(
            format!("{who} accepts our token but refuses what we ask for{}.", bracketed(rest.trim_start_matches(": "))),
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
    fn what_a_person_did_is_no_trouble() {
        for status in [SourceStatus::Active, SourceStatus::Paused, SourceStatus::Disconnected] {
            assert_eq!(of_status("HubSpot", status, Some("left over")), None);
        }
    }
}
