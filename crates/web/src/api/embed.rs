//! `POST /internal/embed`: our embedder, for other services that know the secret. The path and the shapes are a contract.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use domain::Fault;
use engine::intake::network;
use engine::memory::embed::{self, NotServed};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::{Credential, address_of};
use super::error::{ApiError, Problem};
use super::extract;
use crate::app::App;

/// Wrong secrets of one network within a minute.
const MOST_WRONG: u32 = 20;
/// Requests at once: making vectors takes whole cores, or other people's money.
const MOST_AT_ONCE: usize = 8;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Texts {
    /// Up to 256 texts, none of them empty, and about 250,000 tokens in all.
    texts: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Embeddings {
    /// One vector of unit length per text, in their order.
    embeddings: Vec<Vec<f32>>,
    /// The name of the model. Vectors of another one cannot be compared with these.
    #[schema(example = "gte_small_384")]
    model: String,
    /// The length of each vector.
    #[schema(example = 384)]
    dim: usize,
}

/// Knows the secret. Without one that is set, there is no such route.
pub(crate) struct Knowing;

impl FromRequestParts<App> for Knowing {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        if app.env.config.brain_secret().is_none() {
            return Err(ApiError::NotFound("page"));
        }
        let whose = network(address_of(&parts.extensions).0);
        if app.wrong_secrets.is_over(&whose, MOST_WRONG).is_some() {
            return Err(ApiError::TooManyFailures);
        }
        match Credential::of(&parts.headers) {
            Some(Credential::Key(given)) if embed::is_brain_secret(&app.env.config, &given) => Ok(Self),
            _ => {
                let _ = app.wrong_secrets.count(whose, MOST_WRONG); // the next one is told
                Err(ApiError::Unverified)
            }
        }
    }
}

/// The vectors of texts, by this server's embedder. Needs `Authorization: Bearer` with `BRAIN_API_SECRET`; while none is set, there is no such route.
#[utoipa::path(post, path = "/internal/embed", tag = "memory", request_body = Texts, security(("brain" = [])),
    responses((status = 200, body = Embeddings), (status = 400, body = Problem), (status = 401, body = Problem),
        (status = 404, body = Problem, description = "No secret is set"),
        (status = 413, body = Problem, description = "Send fewer texts at once"),
        (status = 503, body = Problem, description = "The embedder is away")))]
pub(crate) async fn embed(
    State(app): State<App>,
    _: Knowing,
    sent: Result<extract::Json<Texts>, ApiError>,
) -> Result<Json<Embeddings>, ApiError> {
    let extract::Json(Texts { texts }) = sent.map_err(|refused| match refused {
        // Without the parser's words, which may repeat a text.
        ApiError::Malformed(..) => {
            ApiError::Malformed(StatusCode::BAD_REQUEST, "send JSON: {\"texts\": [\"…\"]}".into())
        }
        other => other,
    })?;
    let enough = ApiError::AtOnce("enough texts are being embedded", 1);
    let _hold = app.embeds.take((), MOST_AT_ONCE).ok_or(enough)?;
    let (model, embeddings) = embed::serve(&app.env, &texts).await?;
    Ok(Json(Embeddings { embeddings, dim: model.dim, model: model.name }))
}

impl From<NotServed> for ApiError {
    fn from(not: NotServed) -> Self {
        match not {
            NotServed::Invalid(what) => Self::Malformed(StatusCode::BAD_REQUEST, what),
            NotServed::TooLarge(what) => Self::OverLimit(what),
            NotServed::Away(Fault::RateLimited { retry_after }) => Self::TooMany(retry_after),
            NotServed::Away(fault) => Self::Unavailable(anyhow::anyhow!(fault.in_words())),
        }
    }
}
