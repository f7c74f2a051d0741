//! Activities: written, listed, looked at, processed again, skipped, linked to a contact.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::{ActivityId, ActivityType, ChannelId, ClientId, ContactId, Direction, PersonId, ProcessingStatus};
use engine::activities;
use engine::activities::written::{self, Written};
use serde::{Deserialize, Serialize};
use store::activities::{Filter, Position, Wanted};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{self, Path, Query, blank_is_none};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Activities {
    activities: Vec<Activity>,
    /// Pass it as `before` to get the page after this one; none on the last.
    next_before: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
pub struct Activity {
    id: Uuid,
    /// email, call, sms, meeting, note, task, whatsapp or other.
    #[schema(value_type = String, example = "email")]
    r#type: ActivityType,
    #[schema(value_type = String)]
    direction: Direction,
    /// raw, processing, completed or failed.
    #[schema(value_type = String)]
    processing_status: ProcessingStatus,
    raw_data: serde_json::Value,
    processed_data: Option<serde_json::Value>,
    metadata: serde_json::Value,
    channel_id: Option<Uuid>,
    contact_id: Option<i64>,
    /// The person whose work it is; none: everyone's.
    person_id: Option<i64>,
    /// The number of times that agents claimed it.
    tries: i32,
    /// It failed for good and waits for a person.
    is_dead: bool,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ActivitiesQuery {
    /// all, unmatched or failed. Default all.
    #[serde(default, deserialize_with = "blank_is_none")]
    view: Option<String>,
    /// Only those of this channel.
    #[serde(default, deserialize_with = "blank_is_none")]
    channel: Option<Uuid>,
    /// Only those of this contact.
    #[serde(default, deserialize_with = "blank_is_none")]
    contact: Option<i64>,
    /// Only the work of this person.
    #[serde(default, deserialize_with = "blank_is_none")]
    person: Option<i64>,
    /// email, call, sms, meeting, note, task, whatsapp or other.
    #[serde(default, deserialize_with = "blank_is_none")]
    #[param(value_type = Option<String>)]
    r#type: Option<ActivityType>,
    /// raw, processing, completed or failed.
    #[serde(default, deserialize_with = "blank_is_none")]
    #[param(value_type = Option<String>)]
    state: Option<ProcessingStatus>,
    /// Only those that came at this time or later.
    #[serde(default, deserialize_with = "blank_is_none")]
    since: Option<DateTime<Utc>>,
    /// Only those that came before this time.
    #[serde(default, deserialize_with = "blank_is_none")]
    until: Option<DateTime<Utc>>,
    /// Only those with this in their subject, text or addresses. Ten thousand are looked at for a page; `next_before` leads on.
    #[serde(default, deserialize_with = "blank_is_none")]
    q: Option<String>,
    /// Only what is older than this one: `next_before` of the page before. If it was deleted meanwhile, the answer is 404, not an empty page.
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<Uuid>,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    limit: Option<i64>,
}

/// Activities, the newest first. Texts are cut, and of `metadata` only parties and error are here; one by its id is whole.
#[utoipa::path(get, path = "/api/v1/activities", tag = "activities", params(ActivitiesQuery),
    responses((status = 200, body = Activities), (status = 400, body = Problem),
        (status = 404, body = Problem, description = "The activity `before` is gone")))]
pub(crate) async fn list(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<ActivitiesQuery>,
) -> Result<Json<Activities>, ApiError> {
    let (is_unmatched, failed) = match query.view.as_deref() {
        None | Some("all") => (false, None),
        Some("unmatched") => (true, None),
        Some("failed") => (false, Some(ProcessingStatus::Failed)),
        Some(_) => {
            return Err(ApiError::Malformed(StatusCode::BAD_REQUEST, "view is all, unmatched or failed".into()));
        }
    };
    let filter = Filter {
        channel_id: query.channel.map(ChannelId),
        contact_id: query.contact.map(ContactId),
        person_id: query.person.map(PersonId),
        r#type: query.r#type,
        status: query.state.or(failed),
        is_unmatched,
        since: query.since,
        until: query.until,
        text: query.q.as_deref(),
    };
    let limit = query.limit.unwrap_or(50).clamp(1, 200);
    let before = match query.before {
        Some(id) => Some(activities::position(&app.env, &caller, ActivityId(id)).await?),
        None => None,
    };
    let wanted = Wanted { filter, before, limit, is_whole: false };
    Ok(Json(activities::list(&app.env, &caller, wanted).await?.into()))
}

/// Makes the answer of a page and of the place before which the next page begins.
impl From<(Vec<store::activities::Activity>, Option<Position>)> for Activities {
    fn from((activities, next): (Vec<store::activities::Activity>, Option<Position>)) -> Self {
        Self {
            activities: activities.into_iter().map(Activity::from).collect(),
            next_before: next.map(|place| place.id),
        }
    }
}

impl From<store::activities::Activity> for Activity {
    fn from(activity: store::activities::Activity) -> Self {
        Self {
            id: activity.id,
            r#type: activity.r#type,
            direction: activity.direction,
            processing_status: activity.processing_status,
            raw_data: activity.raw_data,
            processed_data: activity.processed_data,
            metadata: activity.metadata,
            channel_id: activity.channel_id,
            contact_id: activity.contact_id,
            person_id: activity.person_id,
            tries: activity.tries,
            is_dead: activity.is_dead,
            created_at: activity.created_at,
            updated_at: activity.updated_at,
        }
    }
}

/// A note, a task or a meeting.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddActivity {
    /// note, task or meeting.
    #[schema(value_type = String, example = "note")]
    r#type: ActivityType,
    /// Up to 200 characters. It needs a title or a text.
    #[serde(default)]
    #[schema(example = "Call with Ann")]
    title: String,
    /// Up to 100,000 characters.
    #[serde(default)]
    text: String,
    /// When the meeting is or was, when the task is due, or the time that the note is about.
    at: Option<DateTime<Utc>>,
    /// The contact that it is about.
    contact_id: Option<i64>,
    /// The client that it is about.
    client_id: Option<Uuid>,
    /// An id that you make. Sent again, it is the same activity.
    id: Option<Uuid>,
}

/// Adds a note, a task or a meeting. It is completed at once, found by search within a second, and belongs to the person whose key it is.
#[utoipa::path(post, path = "/api/v1/activities", tag = "activities", request_body = AddActivity,
    responses((status = 201, body = Activity), (status = 200, body = Activity, description = "It was known"), (status = 400, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn create(
    State(app): State<App>,
    Writing(caller): Writing,
    extract::Json(new): extract::Json<AddActivity>,
) -> Result<(StatusCode, Json<Activity>), ApiError> {
    let new = Written {
        id: new.id.map(ActivityId),
        r#type: new.r#type,
        title: new.title,
        text: new.text,
        at: new.at,
        contact_id: new.contact_id.map(ContactId),
        client_id: new.client_id.map(ClientId),
    };
    let added = written::add(&app.env, &caller, new).await?;
    let status = if added.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(added.activity.into())))
}

/// One activity.
#[utoipa::path(get, path = "/api/v1/activities/{id}", tag = "activities", params(("id" = Uuid, Path)),
    responses((status = 200, body = Activity), (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
) -> Result<Json<Activity>, ApiError> {
    Ok(Json(activities::get(&app.env, &caller, ActivityId(id)).await?.into()))
}

/// Retries a failed activity.
#[utoipa::path(post, path = "/api/v1/activities/{id}/retry", tag = "activities", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn retry(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    activities::retry(&app.env, &caller, ActivityId(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Skips an activity: no agent will process it.
#[utoipa::path(post, path = "/api/v1/activities/{id}/skip", tag = "activities", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn skip(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    activities::skip(&app.env, &caller, ActivityId(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkTo {
    contact_id: i64,
    /// From now on events of the activity's address are this contact's too, and those that were nobody's.
    #[serde(default)]
    add_address: bool,
}

#[derive(Serialize, ToSchema)]
pub struct LinkedTo {
    /// The number of other activities of that address that were linked.
    others: usize,
}

/// Links an activity to a contact.
#[utoipa::path(post, path = "/api/v1/activities/{id}/link", tag = "activities", params(("id" = Uuid, Path)), request_body = LinkTo,
    responses((status = 200, body = LinkedTo), (status = 404, body = Problem)))]
pub(crate) async fn link(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    extract::Json(to): extract::Json<LinkTo>,
) -> Result<Json<LinkedTo>, ApiError> {
    let linked = activities::link(&app.env, &caller, ActivityId(id), ContactId(to.contact_id), to.add_address).await?;
    Ok(Json(LinkedTo { others: linked.others }))
}
