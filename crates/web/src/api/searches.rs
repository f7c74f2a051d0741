//! Saved searches: what people ask again, and how many new documents match each.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, NaiveDate, Utc};
use domain::papers::{Decimal, PaperKind};
use engine::searches::{self, Listed};
use serde::{Deserialize, Serialize};
use store::memory::Mode;
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{self, Path};
use super::search::{Moment, SearchQuery};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct SavedSearches {
    searches: Vec<SavedSearch>,
}

#[derive(Serialize, ToSchema)]
pub struct SavedSearch {
    id: Uuid,
    name: String,
    /// The text that is looked for.
    q: String,
    /// hybrid, keyword or vector.
    #[schema(example = "hybrid")]
    mode: String,
    filters: SavedFilters,
    /// The name of the key with which it was saved.
    created_by: String,
    created_at: DateTime<Utc>,
    /// Documents that were stored after that are new.
    seen_at: DateTime<Utc>,
    /// The time of this answer. Pass it as `until` when you mark the search as seen: what is stored later stays new.
    read_at: DateTime<Utc>,
    /// The number of new documents that match. Null: only the first 20 searches of a list are counted.
    n_new: Option<usize>,
    /// There may be more new ones than were counted.
    is_at_least: bool,
    /// The page with its hits.
    url: String,
}

/// Filters of a search; those that are not set are left out.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SavedFilters {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contact: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<Uuid>,
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    paper: Option<PaperKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supplier: Option<String>,
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    amount_min: Option<Decimal>,
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    amount_max: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paper_since: Option<NaiveDate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paper_until: Option<NaiveDate>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaveSearch {
    /// A name that no other saved search has, up to 100 characters.
    name: String,
    /// The text to look for, up to 2,000 characters.
    q: String,
    /// hybrid (default), keyword or vector.
    #[schema(value_type = Option<String>)]
    mode: Option<Mode>,
    #[serde(default)]
    filters: SavedFilters,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MarkSeen {
    /// The time of the answer that was seen, `read_at`. Default: now.
    until: Option<DateTime<Utc>>,
}

/// Saved searches by name, each with the number of documents that were stored since somebody looked and that match it.
#[utoipa::path(get, path = "/api/v1/searches", tag = "memory", responses((status = 200, body = SavedSearches)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<SavedSearches>, ApiError> {
    let _hold = super::search::hold(&app, &caller)?;
    let (listed, base) = (searches::list(&app.env, &caller).await?, app.env.config.base_url());
    Ok(Json(SavedSearches { searches: listed.into_iter().map(|listed| SavedSearch::new(listed, &base)).collect() }))
}

/// Saves a search. What is stored from now on is new to it.
#[utoipa::path(post, path = "/api/v1/searches", tag = "memory", request_body = SaveSearch,
    responses((status = 201, body = SavedSearch), (status = 400, body = Problem),
        (status = 409, body = Problem, description = "Another one has that name, or 100 are saved")))]
pub(crate) async fn create(
    State(app): State<App>,
    Writing(caller): Writing,
    extract::Json(new): extract::Json<SaveSearch>,
) -> Result<(StatusCode, Json<SavedSearch>), ApiError> {
    let SaveSearch { name, q, mode, filters } = new;
    let query = SearchQuery { q, mode, ..filters.into() };
    let id = searches::save(&app.env, &caller, &name, query.asked()).await?;
    let search = searches::get(&app.env, &caller, id).await?;
    let listed = Listed { search, news: Some(searches::News::default()) };
    Ok((StatusCode::CREATED, Json(SavedSearch::new(listed, &app.env.config.base_url()))))
}

/// Marks a saved search as seen until a time: only what was stored after that is new to it.
#[utoipa::path(post, path = "/api/v1/searches/{id}/seen", tag = "memory", params(("id" = Uuid, Path)), request_body = Option<MarkSeen>,
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn see(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    body: Option<extract::Json<MarkSeen>>,
) -> Result<StatusCode, ApiError> {
    let until = body.and_then(|extract::Json(body)| body.until);
    searches::see(&app.env, &caller, id, until).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a saved search. Documents stay.
#[utoipa::path(delete, path = "/api/v1/searches/{id}", tag = "memory", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn delete(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    searches::remove(&app.env, &caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl SavedSearch {
    fn new(Listed { search, news }: Listed, base: &str) -> Self {
        let searches::Asked { text, mode, filters } = search.asked;
        Self {
            url: format!("{base}/searches/{}", search.id),
            id: search.id,
            name: search.name,
            q: text,
            mode: mode.to_string(),
            filters: SavedFilters {
                source: filters.source,
                r#type: filters.r#type,
                since: filters.since,
                until: filters.until,
                contact: filters.contact,
                client: filters.client,
                person: filters.person,
                channel: filters.channel,
                paper: filters.says.paper,
                supplier: filters.says.supplier,
                amount_min: filters.says.amount_min,
                amount_max: filters.says.amount_max,
                paper_since: filters.says.paper_since,
                paper_until: filters.says.paper_until,
            },
            created_by: search.created_by,
            created_at: search.created_at,
            seen_at: search.seen_at,
            read_at: search.read_at,
            n_new: news.map(|news| news.n),
            is_at_least: news.is_some_and(|news| news.is_at_least),
        }
    }
}

impl From<SavedFilters> for SearchQuery {
    fn from(filters: SavedFilters) -> Self {
        Self {
            source: filters.source,
            r#type: filters.r#type,
            since: filters.since.map(Moment::At),
            until: filters.until.map(Moment::At),
            contact: filters.contact,
            client: filters.client,
            person: filters.person,
            channel: filters.channel,
            paper: filters.paper,
            supplier: filters.supplier,
            amount_min: filters.amount_min,
            amount_max: filters.amount_max,
            paper_since: filters.paper_since,
            paper_until: filters.paper_until,
            ..Self::default()
        }
    }
}
