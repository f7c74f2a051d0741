//! Codes for tokens, tokens for newer ones, tokens given back. What was used up and is shown again is in two hands, so its assistant is revoked.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{KeyId, Secret};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use store::assistants::{self, ACCESS_LASTS, Kind, RevokedBy, Shown, clients};
use subtle::ConstantTimeEq as _;

use super::{is_resource, programs, resource};
use crate::Env;

/// The reasons why a program gets nothing, as RFC 6749, 7591 and 8707 name them.
#[derive(Debug, thiserror::Error)]
pub enum OauthError {
    #[error("{0}")]
    InvalidRequest(&'static str),
    #[error("the program is not known here: it has to register again")]
    InvalidClient,
    #[error("the program's document cannot be used: {0}")]
    Document(String),
    #[error("the redirect_uri is not one that the program registered")]
    InvalidRedirect,
    #[error("{0}")]
    InvalidMetadata(&'static str),
    #[error("{0}")]
    InvalidGrant(&'static str),
    #[error("tokens of this server are good for its /mcp and nothing else")]
    InvalidTarget,
    #[error("grant_type is authorization_code or refresh_token")]
    UnsupportedGrant,
    #[error("too many programs have registered here; try again in ten minutes")]
    Full,
    #[error("it cannot be done now")]
    Store(#[from] store::Error),
}

impl OauthError {
    /// The code that the standards give it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidRequest(_) => "invalid_request",
            Self::InvalidClient | Self::Document(_) => "invalid_client",
            Self::InvalidRedirect => "invalid_redirect_uri",
            Self::InvalidMetadata(_) => "invalid_client_metadata",
            Self::InvalidGrant(_) => "invalid_grant",
            Self::InvalidTarget => "invalid_target",
            Self::UnsupportedGrant => "unsupported_grant_type",
            Self::Full | Self::Store(_) => "temporarily_unavailable",
        }
    }
}

/// A request of the token endpoint.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    #[serde(default)]
    pub grant_type: String,
    #[serde(default)]
    pub client_id: String,
    pub client_secret: Option<Secret>,
    pub code: Option<Secret>,
    #[serde(default)]
    pub redirect_uri: String,
    #[serde(default)]
    pub code_verifier: String,
    pub refresh_token: Option<Secret>,
    pub resource: Option<String>,
}

/// A pair of tokens, as the endpoint answers.
#[derive(Serialize)]
pub struct Granted {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
    refresh_token: String,
    scope: String,
}

/// The outcome of a request: tokens, or none, and the key that was revoked because of it.
pub struct Outcome {
    pub granted: Result<Granted, OauthError>,
    pub revoked: Option<KeyId>,
}

impl From<OauthError> for Outcome {
    fn from(error: OauthError) -> Self {
        Self { granted: Err(error), revoked: None }
    }
}

/// Answers a request of the token endpoint.
pub async fn grant(env: &Env, wanted: &Wanted) -> Outcome {
    match granted(env, wanted).await {
        Ok(outcome) => outcome,
        Err(error) => error.into(),
    }
}

async fn granted(env: &Env, wanted: &Wanted) -> Result<Outcome, OauthError> {
    know(env, &wanted.client_id, wanted.client_secret.as_ref()).await?;
    if !is_resource(&env.config, wanted.resource.as_deref().filter(|named| !named.is_empty())) {
        return Err(OauthError::InvalidTarget);
    }
    let (secret, kind) = match wanted.grant_type.as_str() {
        "authorization_code" => (wanted.code.as_ref(), Kind::Code),
        "refresh_token" => (wanted.refresh_token.as_ref(), Kind::Refresh),
        _ => return Err(OauthError::UnsupportedGrant),
    };
    let secret = secret.ok_or(OauthError::InvalidRequest("the code or the refresh_token is missing"))?;
    let at = env.clock.sql();
    // What is wrong is committed too: a code that was tried is used up.
    let outcome = env.db.write(async |tx| {
        let Some(shown) = assistants::take(tx, at, secret, kind).await? else {
            return Ok::<_, store::Error>(OauthError::InvalidGrant("it is not known here").into());
        };
        let (tenant_id, id) = (shown.tenant_id(), shown.assistant_id);
        if shown.is_used {
            let revoked = assistants::revoke(tx, at, tenant_id, id, None, RevokedBy::Reuse).await?;
            if revoked.is_some() {
                tracing::warn!(tenant.id = %tenant_id, "assistant {id} was revoked: a code or token of it was shown twice");
                metrics::counter!("tributary_assistants_reuse_total").increment(1);
            }
            let granted = Err(OauthError::InvalidGrant("it was used before, so everything that came of it was revoked"));
            return Ok(Outcome { granted, revoked });
        }
        if let Err(error) = checked(env, wanted, kind, &shown) {
            return Ok(error.into());
        }
        let tokens = assistants::issue(tx, at, tenant_id, id).await?;
        let granted = Granted {
            access_token: tokens.access.reveal().to_owned(),
            token_type: "Bearer",
            expires_in: ACCESS_LASTS.as_secs(),
            refresh_token: tokens.refresh.reveal().to_owned(),
            scope: shown.scopes.join(" "),
        };
        Ok(Outcome { granted: Ok(granted), revoked: None })
    });
    Ok(outcome.await?)
}

fn checked(env: &Env, wanted: &Wanted, kind: Kind, shown: &Shown) -> Result<(), OauthError> {
    if shown.is_revoked {
        return Err(OauthError::InvalidGrant("it was revoked"));
    }
    if shown.is_expired {
        return Err(OauthError::InvalidGrant("it has expired"));
    }
    if shown.client_id != wanted.client_id {
        return Err(OauthError::InvalidGrant("it was given to another program"));
    }
    if shown.resource != resource(&env.config) {
        return Err(OauthError::InvalidTarget);
    }
    if kind == Kind::Code {
        if shown.redirect_uri.as_deref() != Some(wanted.redirect_uri.as_str()) {
            return Err(OauthError::InvalidGrant("the redirect_uri is not the one of the request"));
        }
        if !answers(&wanted.code_verifier, shown.challenge.as_deref().unwrap_or_default()) {
            return Err(OauthError::InvalidGrant("the code_verifier does not answer the code_challenge"));
        }
    }
    Ok(())
}

/// Whether a verifier answers an S256 challenge (RFC 7636).
fn answers(verifier: &str, challenge: &str) -> bool {
    let is_verifier = (43..=128).contains(&verifier.len())
        && verifier.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    let answer = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    is_verifier && bool::from(answer.as_bytes().ct_eq(challenge.as_bytes()))
}

/// Refuses a program that is not registered, or has a secret and does not show it. One with a document has none.
async fn know(env: &Env, client_id: &str, secret: Option<&Secret>) -> Result<(), OauthError> {
    if client_id.is_empty() {
        return Err(OauthError::InvalidRequest("the client_id is missing"));
    }
    if programs::is_document(client_id) {
        return Ok(());
    }
    let at = env.clock.sql();
    let known = env.db.session(async |conn| clients::get(conn, at, client_id).await).await?;
    let known = known.ok_or(OauthError::InvalidClient)?;
    let is_shown = secret.is_some_and(|secret| known.is_secret(secret));
    if known.has_secret() && !is_shown { Err(OauthError::InvalidClient) } else { Ok(()) }
}

/// Takes a token back that a program no longer needs (RFC 7009): its assistant is revoked. One that is not known, or another program's, changes
/// nothing, and is answered alike. Returns the key that was revoked.
pub async fn give_back(
    env: &Env,
    client_id: &str,
    secret: Option<&Secret>,
    token: &Secret,
) -> Result<Option<KeyId>, OauthError> {
    know(env, client_id, secret).await?;
    let at = env.clock.sql();
    let revoked = env.db.write(async |tx| match assistants::of_token(tx, token).await? {
        Some((tenant_id, id, of)) if of == client_id => {
            assistants::revoke(tx, at, tenant_id, id, None, RevokedBy::Client).await
        }
        _ => Ok(None),
    });
    Ok(revoked.await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_answers_its_own_challenge_alone() {
        // The example of RFC 7636.
        let (verifier, challenge) =
            ("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(answers(verifier, challenge));
        for wrong in ["", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXl", &"a".repeat(43), &"a".repeat(129), challenge] {
            assert!(!answers(wrong, challenge), "{wrong:?}");
        }
        assert!(!answers(verifier, ""));
    }
}
