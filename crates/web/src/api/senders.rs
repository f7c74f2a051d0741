//! Senders that match no contact: listed, ignored, and listed again.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use engine::senders::{self, Latest};
use serde::{Deserialize, Serialize};
use store::queue::MOST_COUNTED;
use store::senders::Ignored;
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract;
use crate::app::App;

/// Senders of each kind in an answer.
const MOST: i64 = 200;

#[derive(Serialize, ToSchema)]
pub struct Senders {
    /// The latest first.
    unrecognised: Vec<UnrecognisedSender>,
    /// The number of all unrecognised senders.
    n_unrecognised: i64,
    /// There are more than were counted.
    is_at_least: bool,
    ignored: Vec<IgnoredSender>,
}

#[derive(Serialize, ToSchema)]
pub struct UnrecognisedSender {
    #[schema(example = "+15005550006")]
    address: String,
    /// The number of its activities without a contact. A thousand means at least so many.
    activities: i64,
    newest_activity_id: Uuid,
    newest_at: DateTime<Utc>,
}

#[derive(Serialize, ToSchema)]
pub struct IgnoredSender {
    #[schema(example = "+15005550006")]
    address: String,
    ignored_by: String,
    ignored_at: DateTime<Utc>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SenderAddress {
    /// As the list has it.
    #[schema(example = "+15005550006")]
    address: String,
}

/// Lists the senders that match no contact, and those that are ignored, at most 200 of each.
#[utoipa::path(get, path = "/api/v1/senders", tag = "contacts", responses((status = 200, body = Senders)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Senders>, ApiError> {
    let unrecognised = senders::unrecognised(&app.env, &caller, MOST).await?;
    Ok(Json((unrecognised, senders::ignored(&app.env, &caller, MOST).await?).into()))
}

impl From<(Latest, Vec<Ignored>)> for Senders {
    fn from((latest, ignored): (Latest, Vec<Ignored>)) -> Self {
        let unrecognised = latest.senders.into_iter().map(|of| UnrecognisedSender {
            address: of.sender.address,
            activities: of.sender.n,
            newest_activity_id: of.newest.id,
            newest_at: of.newest.created_at,
        });
        let ignored = ignored.into_iter().map(|ignored| IgnoredSender {
            address: ignored.address,
            ignored_by: ignored.ignored_by,
            ignored_at: ignored.created_at,
        });
        Self {
            unrecognised: unrecognised.collect(),
            n_unrecognised: latest.n,
            is_at_least: latest.n >= MOST_COUNTED,
            ignored: ignored.collect(),
        }
    }
}

/// Ignores a sender: it is not listed among the unrecognised ones. Its events are stored and processed like all others.
#[utoipa::path(post, path = "/api/v1/senders/ignore", tag = "contacts", request_body = SenderAddress,
    responses((status = 204), (status = 400, body = Problem)))]
pub(crate) async fn ignore(
    State(app): State<App>,
    Writing(caller): Writing,
    extract::Json(sender): extract::Json<SenderAddress>,
) -> Result<StatusCode, ApiError> {
    senders::ignore(&app.env, &caller, &sender.address).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists a sender again that was ignored.
#[utoipa::path(post, path = "/api/v1/senders/restore", tag = "contacts", request_body = SenderAddress,
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn restore(
    State(app): State<App>,
    Writing(caller): Writing,
    extract::Json(sender): extract::Json<SenderAddress>,
) -> Result<StatusCode, ApiError> {
    senders::restore(&app.env, &caller, &sender.address).await?;
    Ok(StatusCode::NO_CONTENT)
}
