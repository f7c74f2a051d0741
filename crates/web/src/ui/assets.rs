//! Style, script and icon: in the binary, at an address that changes with them, so that a browser may keep them for ever.

use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use domain::{Secret, hex};

use crate::api::error::ApiError;
use crate::api::extract::Path;

const FILES: [(&str, &str, &str); 4] = [
    ("app.css", "text/css; charset=utf-8", include_str!("app.css")),
    ("app.js", "text/javascript; charset=utf-8", include_str!("app.js")),
    ("ask.js", "text/javascript; charset=utf-8", include_str!("ask.js")),
    ("icon.svg", "image/svg+xml", include_str!("icon.svg")),
];

static BASE: LazyLock<String> = LazyLock::new(|| {
    let all: String = FILES.iter().map(|(_, _, content)| *content).collect();
    let hash = store::keys::hash(&Secret::new(all));
    format!("/static/{}", hex::encode(&hash[..6]))
});

/// The folder of this binary's files.
pub(super) fn base() -> &'static str {
    &BASE
}

pub(crate) async fn serve(Path((hash, name)): Path<(String, String)>) -> Result<impl IntoResponse, ApiError> {
    let (_, kind, content) = FILES.iter().find(|(file, ..)| *file == name).ok_or(ApiError::NotFound("file"))?;
    // A page of another version asks for its own files during a roll-out: ours are better than none, but not to be kept.
    let is_ours = base().ends_with(&format!("/{hash}"));
    let keep = if is_ours { "public, max-age=31536000, immutable" } else { "no-store" };
    Ok(([(CONTENT_TYPE, *kind), (CACHE_CONTROL, keep)], *content))
}
