//! People: the members of a tenant who own activities.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::{Caller, PersonId, Role};
use engine::people::{self, Fields};
use engine::sessions::{self, Link};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::{Managing, Reading};
use super::error::{ApiError, Problem};
use super::extract::{self, Path};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct People {
    people: Vec<Person>,
}

#[derive(Serialize, ToSchema)]
pub struct Person {
    id: i64,
    email: Option<String>,
    first_name: Option<String>,
    last_name: Option<String>,
    /// The minutes that their activities wait before others may claim them.
    stale_threshold_minutes: i32,
    /// Whether others may claim them at all.
    allow_remote_processing: bool,
    /// Whether the built-in agent works for them: it claims their activities at once, as an agent of their own would. Otherwise it is one of the
    /// others.
    built_in_agent: bool,
    /// The kinds of content that their agents get: text, url (recordings).
    processes: Vec<String>,
    /// Their rights after signing in: owner, member or read-only.
    #[schema(value_type = String, example = "member")]
    role: Role,
    created_at: DateTime<Utc>,
}

/// A person, and how much belongs to them.
#[derive(Serialize, ToSchema)]
pub struct PersonInFull {
    #[serde(flatten)]
    person: Person,
    owns: Owns,
}

/// How much belongs to a person. Counts stop at 10,000.
#[derive(Serialize, ToSchema)]
pub struct Owns {
    /// Channels whose events are theirs.
    channels: i64,
    activities: i64,
    contacts: i64,
    /// Keys that are still good.
    keys: i64,
    /// Devices on which an agent of theirs has run.
    devices: i64,
    /// Signed-in browsers, and links that were not used.
    sessions: i64,
}

/// The fate of the things of a person who was removed.
#[derive(Serialize, ToSchema)]
pub struct RemovedPerson {
    id: i64,
    /// The counts from before. Channels, activities and contacts are everyone's now, keys are revoked, devices are forgotten, sessions have ended.
    owned: Owns,
}

/// A person to add.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddPerson {
    /// The address by which keys and commands name them. No mail is sent to it.
    #[schema(example = "ann@example.com")]
    email: String,
    first_name: Option<String>,
    last_name: Option<String>,
    /// The minutes that their activities wait before others may claim them, 0 to 43,200. Default 15.
    #[schema(minimum = 0, maximum = 43_200)]
    stale_threshold_minutes: Option<i32>,
    /// Whether others may claim their activities at all. Default true.
    allow_remote_processing: Option<bool>,
    /// Whether the built-in agent works for them. Default false.
    built_in_agent: Option<bool>,
    /// Their rights after signing in: owner, member or read-only. Default member.
    #[schema(value_type = Option<String>, example = "member")]
    role: Option<Role>,
}

/// Changes to a person; what is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangePerson {
    email: Option<String>,
    /// An empty text removes it.
    first_name: Option<String>,
    /// An empty text removes it.
    last_name: Option<String>,
    #[schema(minimum = 0, maximum = 43_200)]
    stale_threshold_minutes: Option<i32>,
    allow_remote_processing: Option<bool>,
    built_in_agent: Option<bool>,
    /// Their rights after signing in: owner, member or read-only. Nobody changes their own.
    #[schema(value_type = Option<String>, example = "member")]
    role: Option<Role>,
}

/// A link that signs a browser in.
#[derive(Serialize, ToSchema)]
pub struct SignInLink {
    /// It works once. Give it to that person and to nobody else.
    #[schema(example = "https://hear.example.com/signin#once=…")]
    url: String,
    expires_at: DateTime<Utc>,
}

impl From<Link> for SignInLink {
    fn from(link: Link) -> Self {
        Self { url: link.url.reveal().to_owned(), expires_at: link.expires_at }
    }
}

impl From<Vec<people::Person>> for People {
    fn from(people: Vec<people::Person>) -> Self {
        Self { people: people.into_iter().map(Person::from).collect() }
    }
}

impl From<people::Person> for Person {
    fn from(person: people::Person) -> Self {
        Self {
            id: person.id,
            email: person.email,
            first_name: person.first_name,
            last_name: person.last_name,
            stale_threshold_minutes: person.stale_threshold_minutes,
            allow_remote_processing: person.allow_remote_processing,
            built_in_agent: person.built_in_agent,
            processes: person.processes,
            role: person.role,
            created_at: person.created_at,
        }
    }
}

impl From<people::Owned> for Owns {
    fn from(owned: people::Owned) -> Self {
        let people::Owned { channels, activities, contacts, keys, devices, sessions } = owned;
        Self { channels, activities, contacts, keys, devices, sessions }
    }
}

impl From<(people::Person, people::Owned)> for PersonInFull {
    fn from((person, owned): (people::Person, people::Owned)) -> Self {
        Self { person: person.into(), owns: owned.into() }
    }
}

impl From<(PersonId, people::Owned)> for RemovedPerson {
    fn from((id, owned): (PersonId, people::Owned)) -> Self {
        Self { id: id.0, owned: owned.into() }
    }
}

/// The tenant's people, oldest first.
#[utoipa::path(get, path = "/api/v1/people", tag = "people", responses((status = 200, body = People)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<People>, ApiError> {
    Ok(Json(people::list(&app.env, &caller).await?.into()))
}

/// One person, and how much belongs to them.
#[utoipa::path(get, path = "/api/v1/people/{id}", tag = "people", params(("id" = i64, Path)),
    responses((status = 200, body = PersonInFull), (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<i64>,
) -> Result<Json<PersonInFull>, ApiError> {
    let person = people::get(&app.env, &caller, PersonId(id)).await?;
    let owned = people::owned(&app.env, &caller, PersonId(id)).await?;
    Ok(Json((person, owned).into()))
}

/// Adds a person.
#[utoipa::path(post, path = "/api/v1/people", tag = "people", request_body = AddPerson,
    responses((status = 201, body = Person), (status = 400, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn create(
    State(app): State<App>,
    Managing(caller): Managing,
    extract::Json(new): extract::Json<AddPerson>,
) -> Result<(StatusCode, Json<Person>), ApiError> {
    let AddPerson { email, first_name, last_name, .. } = new;
    let fields = Fields {
        email: Some(email),
        first_name,
        last_name,
        stale_threshold_minutes: new.stale_threshold_minutes,
        allow_remote_processing: new.allow_remote_processing,
        built_in_agent: new.built_in_agent,
        role: new.role,
    };
    Ok((StatusCode::CREATED, Json(people::create(&app.env, &caller, fields).await?.into())))
}

/// Changes a person.
#[utoipa::path(patch, path = "/api/v1/people/{id}", tag = "people", params(("id" = i64, Path)), request_body = ChangePerson,
    responses((status = 200, body = Person), (status = 400, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn change(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<i64>,
    extract::Json(change): extract::Json<ChangePerson>,
) -> Result<Json<Person>, ApiError> {
    let fields = Fields {
        email: change.email,
        first_name: change.first_name,
        last_name: change.last_name,
        stale_threshold_minutes: change.stale_threshold_minutes,
        allow_remote_processing: change.allow_remote_processing,
        built_in_agent: change.built_in_agent,
        role: change.role,
    };
    Ok(Json(change_now(&app, &caller, PersonId(id), fields).await?.into()))
}

/// Changes a person; in this process a role counts at once.
pub(crate) async fn change_now(
    app: &App,
    caller: &Caller,
    id: PersonId,
    fields: Fields,
) -> Result<people::Person, ApiError> {
    let changed = people::change(&app.env, caller, id, fields).await?;
    app.callers.forget_person(id);
    Ok(changed)
}

/// Makes a link that signs a person in, once. An owner makes an invitation, which is good for three days; a person who has signed in makes one for
/// another device of theirs, which is good for 15 minutes. A link that was not used is replaced. No mail is sent: give it to them yourself.
#[utoipa::path(post, path = "/api/v1/people/{id}/link", tag = "people", params(("id" = i64, Path)),
    responses((status = 201, body = SignInLink), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn invite(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<i64>,
) -> Result<(StatusCode, Json<SignInLink>), ApiError> {
    Ok((StatusCode::CREATED, Json(invite_now(&app, &caller, PersonId(id)).await?.into())))
}

pub(crate) async fn invite_now(app: &App, caller: &Caller, id: PersonId) -> Result<Link, ApiError> {
    if !caller.may_invite(id) {
        return Err(ApiError::Forbidden(
            "an owner makes links for others, and a person who has signed in for themselves",
        ));
    }
    Ok(sessions::invite(&app.env, caller, id).await?)
}

/// Removes a person: their keys are revoked, their sessions end, and their channels, activities and contacts become everyone's. `GET` says before how much that is.
#[utoipa::path(delete, path = "/api/v1/people/{id}", tag = "people", params(("id" = i64, Path)),
    responses((status = 200, body = RemovedPerson), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn remove(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<i64>,
) -> Result<Json<RemovedPerson>, ApiError> {
    Ok(Json((PersonId(id), remove_now(&app, &caller, PersonId(id)).await?).into()))
}

/// Removes a person; this process forgets their keys at once.
pub(crate) async fn remove_now(app: &App, caller: &Caller, id: PersonId) -> Result<people::Owned, ApiError> {
    let removed = people::remove(&app.env, caller, id).await?;
    removed.revoked.into_iter().for_each(|key| app.callers.forget(key));
    Ok(removed.owned)
}
