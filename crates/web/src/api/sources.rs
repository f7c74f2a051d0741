//! Sources: accounts at providers, connected, watched, synced and let go.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::{JobKind, Secret, SourceId, SourceStatus, Transport};
use engine::Env;
use engine::pull::connect::ConnectError;
use engine::pull::jobs::Asked;
use engine::pull::words::{self, changes};
use engine::sources::{self, NewSource};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{self, Path};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Sources {
    sources: Vec<Source>,
}

#[derive(Serialize, ToSchema)]
pub struct Source {
    id: Uuid,
    /// The name of its provider, as in `/oauth/{provider}/authorize`.
    #[schema(example = "hubspot")]
    provider: String,
    name: String,
    /// The provider's own name for the account.
    account: Option<String>,
    /// active, token_refresh_failed, subscription_expired, provider_error, paused or disconnected.
    #[schema(value_type = String, example = "active")]
    status: SourceStatus,
    /// A code, such as `refresh_token_invalid: invalid_grant`.
    status_message: Option<String>,
    status_at: DateTime<Utc>,
    /// The problem that needs a person; null while it is synced automatically.
    trouble: Option<InWords>,
    /// rest, mcp, or fixtures for sample data.
    #[schema(value_type = String, example = "rest")]
    transport: Transport,
    token_expires_at: Option<DateTime<Utc>>,
    /// The interval between automatic syncs, in seconds.
    sync_every_secs: f64,
    next_sync_at: Option<DateTime<Utc>>,
    last_successful_sync_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    /// How the changes of a mailbox come in, in words; null for other sources, and while it is not read.
    changes: Option<String>,
    /// Until when the provider of a mailbox tells of its changes; null while it does not.
    subscription_expires_at: Option<DateTime<Utc>>,
    /// The time at which that is renewed.
    subscription_renewal_at: Option<DateTime<Utc>>,
    /// When something was last heard of a mailbox.
    last_notice_at: Option<DateTime<Utc>>,
    /// The number of its documents.
    documents: i64,
    /// Records that could not be read, and nobody has decided about.
    failures: i64,
    /// The job that waits, runs or is paused.
    live_job_id: Option<Uuid>,
}

/// A problem and the action to take.
#[derive(Serialize, ToSchema)]
pub struct InWords {
    what: String,
    todo: String,
}

impl From<words::Trouble> for InWords {
    fn from(trouble: words::Trouble) -> Self {
        Self { what: trouble.what, todo: trouble.todo }
    }
}

impl Source {
    pub fn new(env: &Env, source: store::sources::Source) -> Self {
        let who = env.providers.label(&source.provider);
        let told = changes::until(&source, env.clock.now());
        Self {
            changes: changes::changes(env, &source),
            subscription_expires_at: told.map(|(until, _)| until),
            subscription_renewal_at: told.and_then(|(_, renewal)| renewal),
            last_notice_at: source.last_notice_at,
            trouble: words::of_source(who, &source).map(InWords::from),
            id: source.id,
            provider: source.provider,
            name: source.name,
            account: source.account,
            status: source.status,
            status_message: source.status_message,
            status_at: source.status_at,
            transport: source.transport,
            token_expires_at: source.token_expires_at,
            sync_every_secs: source.sync_every_secs,
            next_sync_at: source.next_sync_at,
            last_successful_sync_at: source.last_successful_sync_at,
            created_at: source.created_at,
            documents: source.n_documents,
            failures: source.n_failures,
            live_job_id: source.live_job,
        }
    }
}

/// The tenant's sources, the oldest first.
#[utoipa::path(get, path = "/api/v1/sources", tag = "sources", responses((status = 200, body = Sources)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Sources>, ApiError> {
    Ok(Json(Sources::new(&app.env, sources::list(&app.env, &caller).await?)))
}

impl Sources {
    pub fn new(env: &Env, sources: Vec<store::sources::Source>) -> Self {
        Self { sources: sources.into_iter().map(|source| Source::new(env, source)).collect() }
    }
}

/// A source with what it brought, what that took, and what happened lately.
#[derive(Serialize, ToSchema)]
pub struct WholeSource {
    #[serde(flatten)]
    source: Source,
    document_types: Vec<OfType>,
    spend: Spend,
    /// The newest first.
    events: Vec<SourceEvent>,
}

#[derive(Serialize, ToSchema)]
pub struct OfType {
    #[schema(example = "hubspot.contact")]
    document_type: String,
    documents: i64,
}

/// The cost of embedding, over the jobs that are still stored.
#[derive(Serialize, ToSchema)]
pub struct Spend {
    embed_calls: i64,
    embed_texts: i64,
    /// Estimated.
    embed_tokens: i64,
    /// Estimated, in millionths of a dollar.
    cost_micros: i64,
    /// The same for a thousand documents that were new or had changed; null while there are none.
    cost_micros_per_1000_documents: Option<i64>,
}

impl From<store::jobs::Spend> for Spend {
    fn from(spend: store::jobs::Spend) -> Self {
        Self {
            embed_calls: spend.embed_calls,
            embed_texts: spend.embed_texts,
            embed_tokens: spend.embed_tokens,
            cost_micros: spend.cost_micros,
            cost_micros_per_1000_documents: spend.per_thousand(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct SourceEvent {
    /// good, info or trouble.
    #[schema(example = "good")]
    tone: String,
    what: String,
    job_id: Option<Uuid>,
    at: DateTime<Utc>,
}

impl From<store::sources::Event> for SourceEvent {
    fn from(event: store::sources::Event) -> Self {
        Self { tone: event.tone, what: event.what, job_id: event.job_id, at: event.at }
    }
}

/// One source.
#[utoipa::path(get, path = "/api/v1/sources/{id}", tag = "sources", params(("id" = Uuid, Path)),
    responses((status = 200, body = WholeSource), (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
) -> Result<Json<WholeSource>, ApiError> {
    Ok(Json(WholeSource::new(&app.env, sources::whole(&app.env, &caller, SourceId(id)).await?)))
}

impl WholeSource {
    pub fn new(env: &Env, whole: sources::WholeSource) -> Self {
        let of_type = |(document_type, documents)| OfType { document_type, documents };
        Self {
            source: Source::new(env, whole.source),
            document_types: whole.counts.into_iter().map(of_type).collect(),
            spend: whole.spend.into(),
            events: whole.events.into_iter().map(SourceEvent::from).collect(),
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddSource {
    /// The name of the provider.
    #[schema(example = "hubspot")]
    pub provider: String,
    /// A key that a person made at the provider, where it has such keys, such as the token of a private app. Other accounts are connected in
    /// a browser, at `/oauth/{provider}/authorize`.
    #[schema(value_type = Option<String>)]
    pub key: Option<Secret>,
    /// Connects sample data instead of an account.
    #[serde(default)]
    pub fixtures: bool,
    /// The way in which it is read: rest (default) or mcp.
    #[schema(value_type = Option<String>, example = "rest")]
    pub transport: Option<Transport>,
    /// The source whose key this one replaces; left out: a new one, or the one that the account already is.
    pub source_id: Option<Uuid>,
}

/// Connects a source, by a key or with sample data. Its first sync begins at once.
#[utoipa::path(post, path = "/api/v1/sources", tag = "sources", request_body = AddSource,
    responses((status = 201, body = Source), (status = 400, body = Problem),
        (status = 404, body = Problem, description = "There is no source `source_id`"),
        (status = 409, body = Problem, description = "It is connected in a browser: the detail says where"), (status = 502, body = Problem)))]
pub(crate) async fn create(
    State(app): State<App>,
    Writing(caller): Writing,
    extract::Json(new): extract::Json<AddSource>,
) -> Result<(StatusCode, Json<Source>), ApiError> {
    let AddSource { provider, key, fixtures, transport, source_id } = new;
    let new = NewSource { provider, key, fixtures, transport, replaces: source_id.map(SourceId) };
    let id = sources::connect(&app.env, &caller, new).await?;
    Ok((StatusCode::CREATED, Json(Source::new(&app.env, sources::get(&app.env, &caller, id).await?))))
}

impl From<ConnectError> for ApiError {
    fn from(error: ConnectError) -> Self {
        let status = match error {
            ConnectError::Store(error) => return error.into(),
            ConnectError::Invalid(what) => return Self::Malformed(StatusCode::BAD_REQUEST, what),
            ConnectError::NoSource => return Self::NotFound("source"),
            ConnectError::Interrupted => return Self::Internal(error.into()),
            ConnectError::NotSetUp(..)
            | ConnectError::OtherAccount(..)
            | ConnectError::Meanwhile
            | ConnectError::InBrowser { .. }
            | ConnectError::Forgotten => StatusCode::CONFLICT,
            ConnectError::Denied(..) => StatusCode::FORBIDDEN,
            ConnectError::OurClient(_) | ConnectError::Trouble(_) => StatusCode::BAD_GATEWAY,
            ConnectError::UnknownState
            | ConnectError::BadCode
            | ConnectError::NoKeys(_)
            | ConnectError::ByKeyAlone(_)
            | ConnectError::NoSamples(_)
            | ConnectError::NotRead(_)
            | ConnectError::Refused(_) => StatusCode::BAD_REQUEST,
        };
        Self::NotConnected(status, error.to_string())
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeSource {
    /// The interval between automatic syncs: a minute (60) to thirty days. With a day or more, syncs run at night.
    #[schema(example = 21_600)]
    sync_every_secs: u64,
}

/// Changes the interval between a source's automatic syncs.
#[utoipa::path(patch, path = "/api/v1/sources/{id}", tag = "sources", params(("id" = Uuid, Path)), request_body = ChangeSource,
    responses((status = 200, body = Source), (status = 400, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn change(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    extract::Json(wanted): extract::Json<ChangeSource>,
) -> Result<Json<Source>, ApiError> {
    let (id, every) = (SourceId(id), Duration::from_secs(wanted.sync_every_secs));
    sources::set_sync_every(&app.env, &caller, id, every).await?;
    Ok(Json(Source::new(&app.env, sources::get(&app.env, &caller, id).await?)))
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SyncSource {
    /// `full` reads everything again, `delta` what changed. Left out: what changed, or everything where nothing was read to the end yet.
    #[schema(value_type = Option<String>, example = "delta")]
    pub kind: Option<JobKind>,
}

#[derive(Serialize, ToSchema)]
pub struct SyncAsked {
    pub job_id: Uuid,
    /// False: this job was under way already, and another one runs after it.
    pub is_new: bool,
}

impl From<Asked> for SyncAsked {
    fn from(asked: Asked) -> Self {
        match asked {
            Asked::Started(id) => Self { job_id: id.0, is_new: true },
            Asked::Running(id) => Self { job_id: id.0, is_new: false },
        }
    }
}

/// Starts a sync. While one is under way, another runs after it. The body may be left out.
#[utoipa::path(post, path = "/api/v1/sources/{id}/sync", tag = "sources", params(("id" = Uuid, Path)), request_body = Option<SyncSource>,
    responses((status = 202, body = SyncAsked), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "It is paused or disconnected, or has to be reconnected first")))]
pub(crate) async fn sync(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    wanted: Option<extract::Json<SyncSource>>,
) -> Result<(StatusCode, Json<SyncAsked>), ApiError> {
    let kind = wanted.and_then(|extract::Json(wanted)| wanted.kind);
    Ok((StatusCode::ACCEPTED, Json(sources::sync(&app.env, &caller, SourceId(id), kind).await?.into())))
}

/// Stops syncing a source until it is resumed. A running sync stops after its page.
#[utoipa::path(post, path = "/api/v1/sources/{id}/pause", tag = "sources", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn pause(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    sources::pause(&app.env, &caller, SourceId(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Resumes a paused source where it stopped.
#[utoipa::path(post, path = "/api/v1/sources/{id}/resume", tag = "sources", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn resume(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    sources::resume(&app.env, &caller, SourceId(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    #[test]
    fn why_nothing_was_connected_is_told_apart() {
        let status = |error: ConnectError| ApiError::from(error).into_response().status().as_u16();
        assert_eq!(status(ConnectError::UnknownState), 400);
        assert_eq!(status(ConnectError::Denied("HubSpot", "access_denied".into())), 403);
        assert_eq!(status(ConnectError::NotSetUp("HubSpot", "HUBSPOT_CLIENT_ID", "HUBSPOT_CLIENT_SECRET")), 409);
        assert_eq!(status(ConnectError::OtherAccount("1".into(), "2".into())), 409);
        assert_eq!(status(ConnectError::Forgotten), 409);
        assert_eq!(status(ConnectError::Refused("HubSpot refused the key or token".into())), 400);
        assert_eq!(status(ConnectError::OurClient("HubSpot")), 502);
        assert_eq!(status(ConnectError::Store(store::Error::TimedOut)), 503);
    }
}
