//! OAuth's calls: the address where a person consents, the exchange of a code, and one refresh. The engine decides when to refresh and
//! whether to try again: each call here is one attempt, since a provider that rotates its tokens may have heard the one whose answer was
//! lost.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use domain::Secret;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap};
use reqwest::{Response, Url};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::settings::Settings;
use super::spec::{ClientProof, Oauth, Provider};
use crate::Http;
use crate::http::{io_kind, retry_after};

const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// A pair of tokens that comes late is still the only good one, so it is waited for; a caller that wants it now waits less.
const REFRESH_WITHIN: Duration = Duration::from_secs(120);
const ANSWER_MAX_BYTES: usize = 64 * 1024;
const TOKEN_MAX_BYTES: usize = 16 * 1024;
const WAIT: Duration = Duration::from_secs(60);
const WAIT_MAX: Duration = Duration::from_secs(86_400);
/// No provider's token is good for longer. A provider that says so is not believed, and the token is refreshed sooner.
const LIFE_MAX: Duration = Duration::from_secs(86_400);

/// Our app at a provider.
#[derive(Clone)]
pub struct OauthApp {
    pub provider: Provider,
    oauth: &'static Oauth,
    authorize_url: String,
    token_url: String,
    client_id: String,
    client_secret: Secret,
}

/// The tokens that a provider gave.
#[derive(Debug)]
pub struct Grant {
    pub access_token: Secret,
    /// None: the one we have stays good.
    pub refresh_token: Option<Secret>,
    /// None: the provider did not say, or nothing that can be true.
    pub expires_in: Option<Duration>,
    /// The scopes that were consented to; of a refresh, those that the answer names.
    pub scopes: Vec<String>,
}

/// The reasons why there is no grant.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The code or the refresh token is no longer good: a person has to connect again.
    #[error("the authorization was revoked ({code})")]
    Revoked { code: &'static str },
    /// The provider does not know our client.
    #[error("the provider does not accept our client id and secret")]
    OurClient,
    #[error("the provider asked us to wait {} s", retry_after.as_secs())]
    Wait { retry_after: Duration },
    /// The request surely had no effect: it was never sent, or refused for a reason that passes.
    #[error("{0}")]
    Passing(String),
    /// The request was sent, and its outcome is not known.
    #[error("{0}")]
    Unknown(String),
}

impl OauthApp {
    /// Our app, if the settings name it.
    pub fn new(provider: Provider, settings: &Settings) -> Option<Self> {
        let oauth = provider.oauth.as_ref()?;
        let (id, secret) = (settings.get(oauth.client_id)?, settings.get(oauth.client_secret)?);
        Some(Self {
            provider,
            oauth,
            authorize_url: settings.text(oauth.authorize_url).to_owned(),
            token_url: settings.text(oauth.token_url).to_owned(),
            client_id: id.to_owned(),
            client_secret: Secret::new(secret),
        })
    }

    /// The address where a person consents. `verifier` is a secret of this one journey; the provider sees only its digest.
    pub fn authorize(&self, redirect_uri: &str, state: &str, verifier: &Secret) -> String {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.reveal()));
        let scopes = self.oauth.scopes.join(" ");
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", &self.client_id),
            ("redirect_uri", redirect_uri),
            ("scope", &scopes),
            ("state", state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        query.extend_from_slice(self.oauth.authorize_query);
        match Url::parse_with_params(&self.authorize_url, &query) {
            Ok(url) => url.into(),
            // A setting that is no URL leads nowhere, whatever is appended.
            Err(_) => self.authorize_url.clone(),
        }
    }

    /// Exchanges a code for tokens.
    pub async fn exchange(
        &self,
        http: &Http,
        code: &str,
        redirect_uri: &str,
        verifier: &Secret,
    ) -> Result<Grant, GrantError> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier.reveal()),
        ];
        let mut grant = self.ask(http, &form, ANSWER_WITHIN).await?;
        if grant.scopes.is_empty() {
            // A provider that does not say gave what was asked for.
            grant.scopes = self.oauth.scopes.iter().map(|scope| (*scope).to_owned()).collect();
        }
        Ok(grant)
    }

    /// Asks for a new access token once.
    pub async fn refresh(&self, http: &Http, refresh_token: &Secret) -> Result<Grant, GrantError> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh_token.reveal())];
        self.ask(http, &form, REFRESH_WITHIN).await
    }

    async fn ask(&self, http: &Http, form: &[(&str, &str)], within: Duration) -> Result<Grant, GrantError> {
        let mut form = form.to_vec();
        let mut request = http.client().post(&self.token_url).timeout(within);
        request = request.header(ACCEPT, "application/json").header(ACCEPT_ENCODING, "identity");
        match self.oauth.client_proof {
            ClientProof::BasicAuth => {
                request = request.basic_auth(&self.client_id, Some(self.client_secret.reveal()));
            }
            ClientProof::Form => {
                form.extend([("client_id", self.client_id.as_str()), ("client_secret", self.client_secret.reveal())]);
            }
        }
        let answer = request.form(&form).send().await.map_err(|error| self.in_words(&error))?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        match self.read(answer).await {
            Ok(body) => self.heard(status, &headers, &body),
            // The status is a refusal, whether or not the body arrived.
            Err(_) if status >= 500 || status == 429 => self.heard(status, &headers, &[]),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, mut answer: Response) -> Result<Vec<u8>, GrantError> {
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| self.in_words(&error))? {
            if body.len() + piece.len() > ANSWER_MAX_BYTES {
                return Err(self.unknown("gave an answer without an end"));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn heard(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Result<Grant, GrantError> {
        let who = self.provider.label;
        if (200..300).contains(&status) {
            return granted(body).ok_or_else(|| self.unknown("gave an answer without a token"));
        }
        let said: Value = serde_json::from_slice(body).unwrap_or_default();
        match said.get("error").and_then(Value::as_str) {
            Some("invalid_grant") => return Err(GrantError::Revoked { code: "invalid_grant" }),
            Some("invalid_client" | "unauthorized_client" | "disabled_client" | "deleted_client") => {
                return Err(GrantError::OurClient);
            }
            _ => {}
        }
        if let Some(error) = (self.oauth.refusal)(status, &said) {
            return Err(error);
        }
        Err(match status {
            429 => GrantError::Wait { retry_after: retry_after(headers, WAIT, WAIT_MAX).unwrap_or(WAIT) },
            401 => GrantError::Revoked { code: "unauthorized" },
            500.. => GrantError::Passing(format!("{who} is not well ({status})")),
            _ => GrantError::Passing(format!("{who} refused to give a token (http_{status})")),
        })
    }

    fn unknown(&self, what: &str) -> GrantError {
        GrantError::Unknown(format!("{} {what}", self.provider.label))
    }

    fn in_words(&self, error: &reqwest::Error) -> GrantError {
        let (who, kind) = (self.provider.label, io_kind(error));
        if error.is_builder() {
            return GrantError::Passing(format!("{who} cannot be asked: check its token address in the settings"));
        }
        // Without a connection nothing was sent.
        if error.is_connect() {
            return GrantError::Passing(format!("{who} could not be reached{kind}"));
        }
        if error.is_timeout() {
            return self.unknown("did not answer in time");
        }
        GrantError::Unknown(format!("the connection to {who} broke{kind}"))
    }
}

/// The grant in a good answer.
fn granted(body: &[u8]) -> Option<Grant> {
    #[derive(Deserialize)]
    struct Told {
        access_token: String,
        refresh_token: Option<String>,
        #[serde(default)]
        expires_in: Value,
        #[serde(default)]
        scope: Value,
        #[serde(default)]
        scopes: Value,
    }
    // By way of a value: the last of a key that comes twice counts.
    let told = Told::deserialize(serde_json::from_slice::<Value>(body).ok()?).ok()?;
    let secs = told.expires_in.as_u64().or_else(|| told.expires_in.as_str()?.parse().ok());
    let scopes = match (told.scope, told.scopes) {
        (Value::String(words), _) => words.split_whitespace().map(str::to_owned).collect(),
        (_, Value::Array(words)) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let refresh_token = match told.refresh_token {
        // A new token that cannot be used is not the same as none: the old one may be spent.
        Some(text) => Some(token(text)?),
        None => None,
    };
    Some(Grant {
        access_token: token(told.access_token)?,
        refresh_token,
        expires_in: secs.filter(|secs| *secs > 0).map(|secs| Duration::from_secs(secs).min(LIFE_MAX)),
        scopes,
    })
}

/// A token that can be sent back.
fn token(text: String) -> Option<Secret> {
    let is_token = (1..=TOKEN_MAX_BYTES).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    is_token.then(|| Secret::new(text))
}

#[cfg(test)]
mod tests {
    use super::super::{drive, hubspot, quickbooks};
    use super::*;

    fn app(provider: Provider) -> OauthApp {
        let oauth = provider.oauth.as_ref().expect("OAuth");
        let mut settings = Settings::default();
        assert!(OauthApp::new(provider, &settings).is_none(), "nobody named our app");
        settings.set(oauth.client_id.env, "client-7");
        settings.set(oauth.client_secret.env, "canary-secret");
        OauthApp::new(provider, &settings).expect("an app")
    }

    #[test]
    fn a_person_is_sent_with_a_challenge_and_the_least_scopes() {
        // The pair of RFC 7636, appendix B.
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        let url = |provider| app(provider).authorize("https://app.example/cb?a=b", "s t&", &verifier);
        let common = "redirect_uri=https%3A%2F%2Fapp.example%2Fcb%3Fa%3Db";
        let tail =
            "&state=s+t%26&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256";
        for (provider, expected) in [
            (
                &hubspot::SPEC,
                format!(
                    "https://app.hubspot.com/oauth/authorize?response_type=code&client_id=client-7&{common}&scope=\
                     crm.objects.contacts.read+crm.objects.companies.read+crm.objects.deals.read+oauth{tail}"
                ),
            ),
            (
                &drive::SPEC,
                format!(
                    "https://accounts.google.com/o/oauth2/v2/auth?response_type=code&client_id=client-7&{common}&scope=\
                     https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fdrive.readonly{tail}&access_type=offline&prompt=consent"
                ),
            ),
            (
                &quickbooks::SPEC,
                format!(
                    "https://appcenter.intuit.com/connect/oauth2?response_type=code&client_id=client-7&{common}&scope=\
                     com.intuit.quickbooks.accounting{tail}"
                ),
            ),
        ] {
            assert_eq!(url(provider), expected);
        }
        assert!(!url(&hubspot::SPEC).contains("canary"));
    }

    #[test]
    fn a_grant_is_what_it_says_and_nothing_that_cannot_be() {
        let of = |body: &str| {
            let grant = granted(body.as_bytes())?;
            let refresh = grant.refresh_token.map(|token| token.reveal().to_owned());
            Some((
                grant.access_token.reveal().to_owned(),
                refresh,
                grant.expires_in.map(|life| life.as_secs()),
                grant.scopes,
            ))
        };
        let some = |access: &str, refresh: Option<&str>, secs, scopes: &[&str]| {
            let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
            Some((access.to_owned(), refresh.map(str::to_owned), secs, scopes))
        };
        for (body, expected) in [
            (r#"{"access_token":"a","refresh_token":"r","expires_in":1800}"#, some("a", Some("r"), Some(1800), &[])),
            (r#"{"access_token":"a","expires_in":"3599","scope":"x y"}"#, some("a", None, Some(3599), &["x", "y"])),
            (r#"{"access_token":"a","scopes":["x",5]}"#, some("a", None, None, &["x"])),
            (r#"{"access_token":"a","expires_in":0}"#, some("a", None, None, &[])),
            (r#"{"access_token":"a","expires_in":-5}"#, some("a", None, None, &[])),
            (r#"{"access_token":"a","expires_in":1e99}"#, some("a", None, None, &[])),
            (r#"{"access_token":"a","expires_in":99999999999}"#, some("a", None, Some(86_400), &[])),
            (r#"{"access_token":"a","refresh_token":"r\n"}"#, None),
            (r#"{"access_token":"a","refresh_token":null}"#, some("a", None, None, &[])),
            (r#"{"access_token":"b","access_token":"a"}"#, some("a", None, None, &[])),
            (r#"{"access_token":""}"#, None),
            (r#"{"access_token":"a b"}"#, None),
            (r#"{"access_token":5}"#, None),
            (r#"{"refresh_token":"r"}"#, None),
            ("<html>", None),
            ("", None),
        ] {
            assert_eq!(of(body), expected, "{body}");
        }
    }

    #[test]
    fn a_refusal_says_who_has_to_do_something() {
        let short = |error: &GrantError| match error {
            GrantError::Revoked { code } => format!("revoked {code}"),
            GrantError::OurClient => "ours".to_owned(),
            GrantError::Wait { retry_after } => format!("wait {}", retry_after.as_secs()),
            GrantError::Passing(_) => "passing".to_owned(),
            GrantError::Unknown(_) => "unknown".to_owned(),
        };
        for (status, after, body, expected) in [
            (400, None, r#"{"error":"invalid_grant","error_description":"canary"}"#, "revoked invalid_grant"),
            (400, None, r#"{"status":"BAD_REFRESH_TOKEN","message":"canary"}"#, "revoked bad_refresh_token"),
            (400, None, r#"{"status":"BAD_AUTH_CODE"}"#, "revoked bad_auth_code"),
            (
                400,
                None,
                r#"{"status":"error","category":"VALIDATION_ERROR","message":"missing or invalid refresh token"}"#,
                "revoked bad_refresh_token",
            ),
            (
                400,
                None,
                r#"{"category":"VALIDATION_ERROR","message":"Invalid refresh_token: canary"}"#,
                "revoked bad_refresh_token",
            ),
            (400, None, r#"{"category":"VALIDATION_ERROR","message":"Unknown auth code"}"#, "revoked bad_auth_code"),
            (400, None, r#"{"category":"VALIDATION_ERROR","message":"missing or unknown client id"}"#, "ours"),
            (400, None, r#"{"category":"VALIDATION_ERROR","message":"Invalid input"}"#, "passing"),
            (503, None, r#"{"message":"the refresh token service is down"}"#, "passing"),
            (401, None, r#"{"error":"invalid_client"}"#, "ours"),
            (400, None, r#"{"error":"unauthorized_client"}"#, "ours"),
            (400, None, r#"{"status":"BAD_CLIENT_ID"}"#, "ours"),
            (401, None, "", "revoked unauthorized"),
            (401, None, "<html>", "revoked unauthorized"),
            (429, None, "", "wait 60"),
            (429, Some("5"), "", "wait 5"),
            (429, Some("999999999"), "", "wait 86400"),
            (429, Some("soon"), "", "wait 60"),
            (500, None, "", "passing"),
            (503, Some("5"), "<html>canary", "passing"),
            (400, None, r#"{"error":"canary"}"#, "passing"),
            (302, None, "", "passing"),
            (200, None, "<html>", "unknown"),
            (200, None, r#"{"error":"canary"}"#, "unknown"),
            (204, None, "", "unknown"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(after) = after {
                headers.insert("retry-after", after.parse().expect("a value"));
            }
            let error = app(&hubspot::SPEC).heard(status, &headers, body.as_bytes()).expect_err("a refusal");
            assert_eq!(short(&error), expected, "{status} {body}");
            assert!(!error.to_string().contains("canary"), "{error}");
        }
    }
}
