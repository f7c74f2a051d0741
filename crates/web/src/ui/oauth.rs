//! The way to a provider and back, by which a person connects a source. The session that sets out is the one that comes back; nothing of
//! what the provider sends along is shown or logged.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use domain::{Scope, SourceId, Transport};
use engine::pull::Provider;
use engine::pull::connect::{self, ConnectError, Returned};
use engine::sources::{self, asked_transport};
use serde::Deserialize;
use uuid::Uuid;

use super::source::Flash;
use super::sources::HERE;
use super::{Visitor, signin};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::api::origin;
use crate::app::App;

#[derive(Deserialize)]
pub(crate) struct Going {
    /// The source to reconnect; none: a new one.
    #[serde(default, deserialize_with = "blank_is_none")]
    source: Option<Uuid>,
    transport: Option<Transport>,
}

/// Sends a person to the provider. Only one of our own pages, or a person's own typing, starts that.
pub(crate) async fn authorize(
    State(app): State<App>,
    headers: HeaderMap,
    visitor: Result<Visitor, ApiError>,
    Path(provider): Path<String>,
    Query(going): Query<Going>,
) -> Result<Response, ApiError> {
    if origin::is_foreign(&headers) {
        return Err(ApiError::CrossSite);
    }
    let visitor = match visitor {
        // To a page of ours, from which one sets out again: signing in is a form, and browsers do not let a form lead to a provider.
        Err(ApiError::Unauthenticated) => {
            let page = going.source.map_or_else(|| HERE.to_owned(), |id| format!("{HERE}/{id}"));
            return Ok(Redirect::to(&signin::address(&page)).into_response());
        }
        known => known?,
    };
    let provider = known(&app, &provider)?;
    let session = traveller(&visitor)?;
    let reconnect = going.source.map(SourceId);
    if let Some(id) = reconnect {
        let source = sources::get(&app.env, &visitor, id).await?;
        if source.provider != provider.name {
            return Err(ApiError::NotFound("source"));
        }
    }
    let transport = asked_transport(going.transport)?;
    let url = connect::authorize(&app.env, visitor.tenant_id, &session, provider, reconnect, transport).await?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, url)]).into_response())
}

/// The provider that an address names.
fn known(app: &App, name: &str) -> Result<Provider, ApiError> {
    app.env.providers.named(name).map_err(|_| ApiError::NotFound("page"))
}

/// A person comes back from the provider, with a code or with why there is none.
pub(crate) async fn callback(
    State(app): State<App>,
    visitor: Result<Visitor, ApiError>,
    Path(provider): Path<String>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let visitor = match visitor {
        // Not by way of the usual detour, which would carry the code along: another session has no use for it.
        Err(ApiError::Unauthenticated) => return Ok(Redirect::to(&signin::address(HERE)).into_response()),
        known => known?,
    };
    let provider = known(&app, &provider)?;
    let (session, tenant_id) = (traveller(&visitor)?, visitor.tenant_id);
    let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let returned = Returned::read(provider, parameters);
    // In a task of its own: a person who leaves now has a code that is used up, and the tokens it gave must not be lost with them.
    let env = app.env.clone();
    let returning =
        tokio::spawn(async move { connect::returned(&env, tenant_id, &session, provider, &returned).await });
    let id = match returning.await.map_err(|_| ConnectError::Interrupted)? {
        Ok(id) => id,
        // The provider's page says why, and what to do.
        Err(error) => return super::connect::refused(&app, &visitor, provider, error).await,
    };
    tracing::info!(source.id = %id, tenant.id = %tenant_id, "{provider} source {id} was connected by key {}", visitor.key_id);
    Ok(Flash::Connected.back(&format!("{HERE}/{id}")))
}

/// The session that a trip is bound to, as sessions are stored. Who comes with a key has no browser to be sent anywhere.
fn traveller(visitor: &Visitor) -> Result<[u8; 32], ApiError> {
    visitor.0.need(Scope::Write)?;
    visitor.session().ok_or(ApiError::Forbidden("accounts are connected in a browser: sign in at /signin first"))
}
