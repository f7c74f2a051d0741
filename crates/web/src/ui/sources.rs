//! Sources: the accounts that are read, how each is, and how one more is connected.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{clipped, counted};
use domain::{Scope, SourceStatus, Transport};
use engine::pull::Provider;
use engine::pull::guide::Mark;
use engine::pull::words::{self, Condition};
use engine::sources::{NewSource, Watched};
use serde::Deserialize;
use store::queue::MOST_COUNTED;
use store::sources::{Event, Source};

use super::card::Doing;
use super::channels::given;
use super::connect;
use super::flash::flashes;
use super::gallery::of_provider;
use super::job::{self, sentence};
use super::layout::Layout;
use super::source;
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::app::App;

pub(super) const HERE: &str = "/connections/accounts";

#[derive(Template)]
#[template(path = "sources.html")]
struct SourcesPage {
    layout: Layout,
    flash: &'static str,
    cards: Vec<SourceCard>,
    /// Providers that can be connected, each with its own page.
    offers: Vec<Offer>,
    may_act: bool,
}

/// A source in few words.
pub(super) struct SourceCard {
    pub id: String,
    pub href: String,
    pub name: String,
    pub provider: String,
    /// The provider as our forms and addresses spell it.
    pub provider_id: String,
    pub account: String,
    /// The way in which it is read, where that is not the usual one.
    pub by: &'static str,
    pub health: Health,
    pub documents: String,
    /// Records that could not be read; empty: none.
    pub failures: String,
    pub last: When,
    pub next: When,
    /// A link to authorize it again, when it needs that.
    pub reconnect: Option<String>,
    /// The job that waits or runs, and its address.
    pub doing: Option<(String, Doing)>,
}

/// The health of a source: a coloured word and a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Health {
    pub class: &'static str,
    pub word: &'static str,
    pub story: String,
    /// Empty: nothing.
    pub todo: String,
}

impl SourceCard {
    pub fn new(app: &App, watched: &Watched, now: DateTime<Utc>) -> Self {
        let Watched { source, job, is_being_forgotten } = watched;
        let who = app.env.providers.label(&source.provider);
        let live = job.as_ref().filter(|job| !job.status.is_over() && !is_being_forgotten);
        Self {
            id: source.id.to_string(),
            href: format!("{HERE}/{}", source.id),
            name: clipped(&source.name, 100),
            provider: who.to_owned(),
            provider_id: source.provider.clone(),
            account: clipped(source.account.as_deref().unwrap_or_default(), 80),
            by: if source.transport == Transport::Rest { "" } else { words::read_by(source) },
            health: explained(app, source, words::Health::new(who, source, job.as_ref(), *is_being_forgotten)).into(),
            documents: match source.n_documents {
                1 => "1 document".into(),
                n => format!("{} documents", counted(n, MOST_COUNTED)),
            },
            failures: match source.n_failures {
                0 => String::new(),
                1 => "1 record could not be read".into(),
                n => format!("{} records could not be read", counted(n, MOST_COUNTED)),
            },
            last: When::maybe(source.last_successful_sync_at, now),
            next: When::maybe(words::next_sync(source, now), now),
            reconnect: reconnect(app, source).filter(|_| is_stopped(source) && !is_being_forgotten),
            doing: live.map(|job| (format!("/jobs/{}", job.id), job::doing(job, now))),
        }
    }
}

/// The provider's own advice goes before the general one.
fn explained(app: &App, source: &Source, health: words::Health) -> words::Health {
    let provider = app.env.providers.named(&source.provider).ok();
    let is_refused = matches!(health.condition, Condition::Reconnect | Condition::Refused);
    match provider.filter(|_| is_refused).and_then(|provider| words::advice(provider, source)) {
        Some(advice) => words::Health { todo: advice.todo.to_owned(), ..health },
        None => health,
    }
}

/// Whether only a person can get it going again, by connecting it anew.
pub(super) fn is_stopped(source: &Source) -> bool {
    matches!(source.status, SourceStatus::TokenRefreshFailed | SourceStatus::Disconnected)
}

/// The address at which a person allows a source again on the provider's own pages. None: it is connected by a key, or our app is not set up.
pub(super) fn reconnect(app: &App, source: &Source) -> Option<String> {
    let provider = app.env.providers.named(&source.provider).ok()?;
    let is_keyed = source.status_message.as_deref() == Some("key_refused") || source.transport == Transport::Fixtures;
    let is_possible = !is_keyed && app.env.providers.app(provider).is_some();
    is_possible.then(|| format!("/oauth/{provider}/authorize?source={}", source.id))
}

impl From<words::Health> for Health {
    fn from(words::Health { condition, what, todo }: words::Health) -> Self {
        let class = match condition {
            Condition::BeingForgotten => "deleted",
            Condition::Reconnect => "dead",
            Condition::Expired => "late",
            Condition::Refused | Condition::SyncFailed => "failed",
            Condition::Disconnected => "stopped",
            Condition::Paused => "parked",
            Condition::Reading => "working",
            Condition::Waiting | Condition::NotReadYet => "waiting",
            Condition::UpToDate => "alive",
        };
        Self { class, word: condition.word(), story: format!("{}.", sentence(&what)), todo }
    }
}

/// An event of a source.
pub(super) struct EventRow {
    pub id: String,
    /// Drawn as done, waiting or wrong.
    pub tone: &'static str,
    pub what: String,
    pub at: When,
    pub job: Option<String>,
}

impl EventRow {
    pub fn new(event: &Event, now: DateTime<Utc>) -> Self {
        Self {
            id: event.id.to_string(),
            tone: match event.tone.as_str() {
                "good" => "done",
                "trouble" => "wrong",
                _ => "waiting",
            },
            what: clipped(&event.what, 500),
            at: When::new(event.at, now),
            job: event.job_id.map(|id| format!("/jobs/{id}")),
        }
    }
}

/// The providers that can be connected, in words: "A, B or C".
pub(super) fn providers(app: &App) -> String {
    let labels: Vec<&str> = app.env.providers.all().iter().map(|provider| provider.label).collect();
    words::in_a_row(&labels, "or")
}

/// A provider that can be connected.
struct Offer {
    href: String,
    name: &'static str,
    brings: &'static str,
    mark: Mark,
}

impl Offer {
    fn new(provider: Provider) -> Self {
        let (name, brings, mark) = (provider.label, provider.brings, provider.guide.mark);
        Self { href: of_provider(provider), name, brings, mark }
    }
}

#[derive(Deserialize)]
pub(crate) struct SourcesQuery {
    #[serde(default)]
    done: Flash,
}

flashes! {
    Flash {
        Forgotten = "forgotten": "It is being forgotten: what came from it goes step by step, and then the source itself.",
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<SourcesQuery>,
) -> Result<Response, ApiError> {
    let watched = engine::sources::watch(&app.env, &visitor, None).await?;
    let now = app.env.clock.now();
    let page = SourcesPage {
        layout: Layout::new(&visitor, now, "Accounts", HERE),
        flash: query.done.in_words(),
        cards: watched.iter().map(|watched| SourceCard::new(&app, watched, now)).collect(),
        offers: app.env.providers.all().iter().copied().map(Offer::new).collect(),
        may_act: visitor.may(Scope::Write),
    };
    Ok(html(&page)?.into_response())
}

#[derive(Deserialize)]
pub(crate) struct ConnectForm {
    provider: String,
    #[serde(default)]
    key: String,
    /// Sample data, instead.
    sample: Option<String>,
}

/// Connects by a key, or sample data. If something is wrong about it, the provider's page says what, and what to do.
pub(crate) async fn connect(
    State(app): State<App>,
    Posted { caller, form }: Posted<ConnectForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let provider = app.env.providers.named(&form.provider).map_err(|_| ApiError::NotFound("page"))?;
    let fixtures = form.sample.is_some();
    let key = given(form.key).filter(|_| !fixtures);
    if key.is_none() && !fixtures {
        let what = provider
            .key
            .as_ref()
            .map_or_else(|| "enter a key".to_owned(), |key| format!("enter the key of {}", key.of));
        let visitor = Visitor(caller);
        return connect::refused_with(&app, &visitor, provider, StatusCode::BAD_REQUEST, &what, None).await;
    }
    let new = NewSource { provider: form.provider, key, fixtures, transport: None, replaces: None };
    match engine::sources::connect(&app.env, &caller, new).await {
        Ok(id) => Ok(source::Flash::Connected.back(&format!("{HERE}/{id}"))),
        Err(error) => connect::refused(&app, &Visitor(caller), provider, error).await,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use domain::{JobKind, JobStatus};
    use serde_json::json;
    use store::jobs::Job;
    use uuid::Uuid;

    use super::*;

    pub fn now() -> DateTime<Utc> {
        "2026-11-15T12:00:00Z".parse().expect("a time")
    }

    pub fn source(status: SourceStatus, code: Option<&str>) -> Source {
        Source {
            id: Uuid::nil(),
            tenant_id: Uuid::nil(),
            provider: "hubspot".into(),
            name: "Acme".into(),
            account: Some("51".into()),
            status,
            status_message: code.map(str::to_owned),
            status_at: now(),
            transport: Transport::Rest,
            token_expires_at: None,
            cursors: None,
            sync_every_secs: 86_400.0,
            next_sync_at: None,
            last_successful_sync_at: Some(now()),
            created_at: now(),
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

    pub fn job(status: JobStatus) -> Job {
        Job {
            id: Uuid::nil(),
            tenant_id: Uuid::nil(),
            source_id: Uuid::nil(),
            source_name: "Acme".into(),
            source_provider: "hubspot".into(),
            kind: JobKind::Full,
            status,
            requested_by: "schedule".into(),
            step: None,
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
            error_message: None,
            error_details: json!([]),
            error_count: 0,
            embed_calls: 0,
            embed_texts: 0,
            embed_tokens: 0,
            cost_micros: 0,
            last_heartbeat: None,
            started_at: None,
            finished_at: None,
            created_at: now(),
            updated_at: now(),
        }
    }

    #[test]
    fn how_a_source_is_is_one_word_and_a_sentence() {
        let health = |source: &Source, job: Option<&Job>, is_being_forgotten| {
            Health::from(words::Health::new("HubSpot", source, job, is_being_forgotten))
        };
        let word = |status, code, job: Option<&Job>| health(&source(status, code), job, false).word;
        let (active, failed) = (SourceStatus::Active, job(JobStatus::Failed));
        assert_eq!(word(active, None, None), "up to date");
        assert_eq!(word(active, None, Some(&job(JobStatus::Completed))), "up to date");
        assert_eq!(word(active, None, Some(&job(JobStatus::Running))), "reading");
        assert_eq!(word(active, None, Some(&job(JobStatus::Pending))), "waiting");
        assert_eq!(word(active, None, Some(&failed)), "sync failed");
        assert_eq!(word(SourceStatus::Paused, None, Some(&job(JobStatus::Paused))), "paused");
        assert_eq!(word(SourceStatus::Disconnected, None, None), "disconnected");
        assert_eq!(word(SourceStatus::TokenRefreshFailed, Some("key_refused"), Some(&failed)), "reconnect");
        assert_eq!(word(SourceStatus::ProviderError, Some("forbidden: X"), Some(&failed)), "refused");
        let never = Source { last_successful_sync_at: None, ..source(active, None) };
        assert_eq!(health(&never, None, false).word, "not read yet");
        assert_eq!(health(&never, Some(&failed), true).word, "being forgotten");
    }

    #[test]
    fn a_source_that_has_to_be_reconnected_says_why_and_what_to_do() {
        let of = source(SourceStatus::TokenRefreshFailed, Some("refresh_token_invalid: invalid_grant"));
        let Health { story, todo, .. } = words::Health::new("HubSpot", &of, None, false).into();
        assert_eq!(story, "HubSpot no longer accepts our token (invalid_grant).");
        assert_eq!(todo, "Press Reconnect and allow it again; nothing read so far is lost.");
    }

    #[test]
    fn what_only_a_person_gets_going_is_reconnected() {
        let stopped = [SourceStatus::TokenRefreshFailed, SourceStatus::Disconnected];
        for status in SourceStatus::ALL.iter().copied() {
            assert_eq!(is_stopped(&source(status, None)), stopped.contains(&status), "{status}");
        }
    }
}
