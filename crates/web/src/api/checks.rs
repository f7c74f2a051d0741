//! Days of mailboxes, as their providers count them and as they are stored.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, NaiveDate, Utc};
use domain::SourceId;
use domain::mail::check::CheckState;
use engine::failures::Again;
use engine::mail::check::words::{self, Line, Tone};
use engine::mail::check::{self, KEPT_DAYS};
use engine::{ActError, Env, sources};
use serde::{Deserialize, Serialize};
use store::mail::checks::Check;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{self, Path, Query, blank_is_none};
use super::failures::RetryAsked;
use crate::app::App;

/// The days of a mailbox, the newest first, and what they say together.
#[derive(Serialize, ToSchema)]
pub struct Checks {
    /// equal: each message that the provider counts is accounted for. waiting: some are being read, or nothing was counted yet. differs: some are
    /// missing, or are here and gone there.
    #[schema(example = "equal")]
    outcome: &'static str,
    #[schema(
        example = "Nothing was missed on 8 days from 12 November to 19 November: each of the 412 messages that Gmail counts is accounted for"
    )]
    what: String,
    days: Vec<Day>,
}

/// One day of a mailbox, UTC. `provider` is the sum of `stored`, `skipped`, `kept_out`, `failed`, `waiting`, `not_read` and `missing`.
#[derive(Serialize, ToSchema)]
pub struct Day {
    #[schema(example = "2026-11-14")]
    day: NaiveDate,
    /// new, reading, equal, differs, not_read or unknown.
    #[schema(value_type = String, example = "equal")]
    state: CheckState,
    /// The same in words.
    #[schema(example = "412 messages: 380 stored, 32 left out (newsletter 32)")]
    what: String,
    /// It waits to be counted, or is being counted.
    is_asked: bool,
    checked_at: Option<DateTime<Utc>>,
    /// The number of messages that the provider counts.
    provider: i32,
    stored: i32,
    /// Left out, by the rule that did it.
    skipped: BTreeMap<String, i64>,
    /// A person deleted the document, or left the record out.
    kept_out: i32,
    /// They could not be read.
    failed: i32,
    /// Too new to be judged.
    waiting: i32,
    /// Came in before what the first sync read.
    not_read: i32,
    missing: i32,
    /// Stored here, and gone at the provider.
    surplus: i32,
    /// At most a thousand.
    #[schema(example = json!(["message:18c2f"]))]
    missing_ids: Vec<String>,
    #[schema(example = json!(["message:18c30"]))]
    surplus_ids: Vec<String>,
    /// The reason why it could not be counted.
    #[schema(example = "the source is paused: resume it first")]
    note: Option<String>,
}

impl From<Check> for Day {
    fn from(check: Check) -> Self {
        Self {
            what: words::account(&check),
            day: check.day,
            state: check.state,
            is_asked: check.asked_at.is_some(),
            checked_at: check.checked_at,
            provider: check.n_provider,
            stored: check.n_stored,
            skipped: check.skipped,
            kept_out: check.n_kept_out,
            failed: check.n_failed,
            waiting: check.n_waiting,
            not_read: check.n_not_read,
            missing: check.n_missing,
            surplus: check.n_surplus,
            missing_ids: check.missing,
            surplus_ids: check.surplus,
            note: check.note,
        }
    }
}

impl Checks {
    /// Sums up the days of a source at the provider that people call `who`.
    pub fn new(who: &str, days: Vec<Check>) -> Self {
        let Line { tone, what, .. } = Line::of(who, &days);
        let outcome = match tone {
            Tone::Equal => "equal",
            Tone::Waiting => "waiting",
            Tone::Differs => "differs",
        };
        Self { outcome, what, days: days.into_iter().map(Day::from).collect() }
    }

    pub async fn load(env: &Env, caller: &domain::Caller, id: SourceId, limit: i64) -> Result<Self, ActError> {
        let source = sources::get(env, caller, id).await?;
        let days = check::days(env, caller, id, limit).await?;
        Ok(Self::new(env.providers.label(&source.provider), days))
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChecksQuery {
    /// At most so many days, 1 to 90. Default 30.
    #[serde(default, deserialize_with = "blank_is_none")]
    limit: Option<i64>,
}

/// The days of a mailbox that were compared with what its provider counts, the newest first.
#[utoipa::path(get, path = "/api/v1/sources/{id}/checks", tag = "sources", params(("id" = Uuid, Path), ChecksQuery),
    responses((status = 200, body = Checks), (status = 404, body = Problem)))]
pub(crate) async fn list(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
    Query(query): Query<ChecksQuery>,
) -> Result<Json<Checks>, ApiError> {
    let limit = query.limit.unwrap_or(30).clamp(1, KEPT_DAYS);
    Ok(Json(Checks::load(&app.env, &caller, SourceId(id), limit).await?))
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckSource {
    /// The days to be counted, at most 31, none older than 90 days. Left out: yesterday and today.
    #[serde(default)]
    #[schema(example = json!(["2026-11-14"]))]
    pub days: Vec<NaiveDate>,
}

#[derive(Serialize, ToSchema)]
pub struct CheckAsked {
    #[schema(example = json!(["2026-11-14", "2026-11-15"]))]
    pub days: Vec<NaiveDate>,
}

/// Has days of a mailbox counted at its provider and compared with what is stored. The body may be left out.
#[utoipa::path(post, path = "/api/v1/sources/{id}/check", tag = "sources", params(("id" = Uuid, Path)), request_body = Option<CheckSource>,
    responses((status = 202, body = CheckAsked), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "It is no mailbox, or is not synced now")))]
pub(crate) async fn check(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    wanted: Option<extract::Json<CheckSource>>,
) -> Result<(StatusCode, Json<CheckAsked>), ApiError> {
    let days = wanted.map(|extract::Json(wanted)| wanted.days).unwrap_or_default();
    let days = check::ask(&app.env, &caller, SourceId(id), &days).await?;
    Ok((StatusCode::ACCEPTED, Json(CheckAsked { days })))
}

/// Reads the messages again that differ on a day, in a job of their own, and counts the day once more after it.
#[utoipa::path(post, path = "/api/v1/sources/{id}/checks/{day}/fetch", tag = "sources",
    params(("id" = Uuid, Path), ("day" = NaiveDate, Path, description = "A day, UTC", example = "2026-11-14")),
    responses((status = 202, body = RetryAsked), (status = 404, body = Problem, description = "Nothing differs on that day"),
        (status = 409, body = Problem, description = "The source is not synced now")))]
pub(crate) async fn fetch(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, day)): Path<(Uuid, NaiveDate)>,
) -> Result<(StatusCode, Json<RetryAsked>), ApiError> {
    let again: Again = check::fetch_missing(&app.env, &caller, SourceId(id), day).await?;
    let asked = RetryAsked::of(again).ok_or(ApiError::NotFound("difference"))?;
    Ok((StatusCode::ACCEPTED, Json(asked)))
}
