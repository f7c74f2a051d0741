//! Google's key for Pub/Sub's posts, as tests have it, and the tokens that it signs.

use std::sync::{Arc, LazyLock};

use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

use super::Mailboxes;
use crate::shapes::answer;
use crate::{Shared, lock};

/// A key for tests alone, which anybody can read. A new one for each start would cost seconds.
static KEY: LazyLock<RsaKeyPair> = LazyLock::new(|| {
    let pem = include_str!("../../../../fixtures/gmail/test-signer.pem");
    let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    RsaKeyPair::from_pkcs8(&STANDARD.decode(text).expect("base64")).expect("a key")
});

/// A token that is wrong in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    Issuer,
    Audience,
    Email,
    /// The address of the account was never checked.
    Unverified,
    Expired,
    Future,
    /// Signed by a key that the issuer does not list.
    UnknownKey,
    /// The claims were changed after they were signed.
    Forged,
    /// Not signed at all.
    Unsigned,
    /// There is no token.
    Absent,
}

/// The claims of a good token.
pub(super) struct Claims<'a> {
    pub audience: &'a str,
    pub email: &'a str,
    pub key_id: &'a str,
    pub now: DateTime<Utc>,
}

/// A bearer token. None: the post has no token.
pub(super) fn token(claims: &Claims<'_>, fault: Option<TokenFault>) -> Option<String> {
    use TokenFault::*;
    let iat = claims.now.timestamp();
    let mut head = json!({"alg": "RS256", "kid": claims.key_id, "typ": "JWT"});
    let mut said = json!({"iss": "https://accounts.google.com", "aud": claims.audience, "azp": "115310",
        "sub": "115310", "email": claims.email, "email_verified": true, "iat": iat, "exp": iat + 3600});
    match fault {
        Some(Issuer) => said["iss"] = json!("https://accounts.elsewhere.example"),
        Some(Audience) => said["aud"] = json!("https://elsewhere.example/webhooks/gmail"),
        Some(Email) => said["email"] = json!("somebody@another-project.iam.gserviceaccount.com"),
        Some(Unverified) => said["email_verified"] = json!(false),
        Some(Expired) => (said["iat"], said["exp"]) = (json!(iat - 7200), json!(iat - 3600)),
        Some(Future) => (said["iat"], said["exp"]) = (json!(iat + 3600), json!(iat + 7200)),
        Some(UnknownKey) => head["kid"] = json!("a-key-that-nobody-lists"),
        Some(Unsigned) => head["alg"] = json!("none"),
        Some(Absent) => return None,
        Some(Forged) | None => {}
    }
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&head), part(&said));
    if fault == Some(Unsigned) {
        return Some(format!("{text}."));
    }
    let mut signature = vec![0; KEY.public().modulus_len()];
    KEY.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).expect("a signature");
    if fault == Some(Forged) {
        said["sub"] = json!("0");
    }
    Some(format!("{}.{}.{}", part(&head), part(&said), URL_SAFE_NO_PAD.encode(signature)))
}

/// The keys of the issuer, as its address lists them.
pub(super) async fn certs(State(shared): State<Arc<Shared>>) -> Response {
    let ids = lock(shared.records::<Mailboxes>()).topic.key_ids();
    let parts: PublicKeyComponents<Vec<u8>> = KEY.public_key().into();
    let spelled = |number: &[u8]| URL_SAFE_NO_PAD.encode(number);
    let key = |id: &String| json!({"kty": "RSA", "alg": "RS256", "use": "sig", "kid": id, "n": spelled(&parts.n), "e": spelled(&parts.e)});
    let keys: Vec<Value> = ids.iter().map(key).collect();
    let mut response = answer(200, json!({"keys": keys})).into_response();
    response.headers_mut().insert(CACHE_CONTROL, axum::http::HeaderValue::from_static("public, max-age=19000"));
    response
}
