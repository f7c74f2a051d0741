//! Our pages in a frame of another site's, such as a CRM's: that site is told how agents of the visitor's reach this server.

use axum::Json;
use axum::extract::State;
use domain::Scope;
use engine::keys::{self, FrameKey};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Posted;
use crate::api::error::ApiError;
use crate::app::App;

#[derive(Deserialize)]
pub(crate) struct Framed {
    /// The site that frames us, as far as the browser says it.
    #[serde(default)]
    origin: String,
}

/// Answers with what the page's script posts to the site around it, and to that site alone. Every answer has a key of its own.
pub(crate) async fn tell(State(app): State<App>, posted: Posted<Framed>) -> Result<Json<Value>, ApiError> {
    let Posted { caller, form } = posted;
    let allowed = &app.env.config.embed_origins;
    // Nobody else can frame us, so a single one is meant where the browser does not say.
    let origin = match (form.origin.as_str(), allowed.as_slice()) {
        ("", [only]) => only,
        (given, _) => allowed
            .iter()
            .find(|origin| *origin == given)
            .ok_or(ApiError::Forbidden("this site may not show these pages; EMBED_ORIGINS says which may"))?,
    };
    caller.need(Scope::Agent)?; // or a key that may only look would make itself another
    let person_id =
        caller.person_id.ok_or(ApiError::Forbidden("this key belongs to no person, so it has no agents"))?;
    let FrameKey { secret, revoked } = keys::create_for_frame(&app.env, &caller, person_id, origin).await?;
    revoked.into_iter().for_each(|id| app.callers.forget(id));
    let payload = json!({
        "appName": "atomic-crm",
        "url": app.env.config.base_url(),
        "anonKey": secret.reveal(),
        "tables": ["activities"],
        "filters": { "activities": "processing_status=eq.raw" },
    });
    Ok(Json(json!({ "origin": origin, "message": { "type": "SUPABASE_CONFIG", "payload": payload } })))
}
