//! A JSON web token in its three parts.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::Refused;
use super::keys::Key;

/// Google's are below 1,500 bytes.
const TOKEN_MAX_BYTES: usize = 8 * 1024;

/// A token whose head was read. Its claims count once its signature is checked.
pub(super) struct Token<'a> {
    pub key_id: String,
    /// The text that was signed: head and claims.
    signed: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Head {
    alg: String,
    kid: Option<String>,
    /// Extensions that a reader has to understand. We know none.
    crit: Option<IgnoredAny>,
}

/// The claims that are looked at.
#[derive(Deserialize)]
pub(super) struct Claims {
    pub iss: String,
    pub aud: String,
    pub exp: i64,
    pub iat: i64,
    #[serde(default)]
    pub email: String,
    pub email_verified: Option<bool>,
}

impl<'a> Token<'a> {
    pub fn read(text: &'a str) -> Result<Self, Refused> {
        if text.len() > TOKEN_MAX_BYTES {
            return Err(Refused::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(Refused::Malformed)?;
        let (head, claims) = signed.split_once('.').ok_or(Refused::Malformed)?;
        let Head { alg, kid, crit } = json(head)?;
        if alg != "RS256" {
            return Err(Refused::Algorithm);
        }
        let (Some(key_id), None) = (kid, crit) else { return Err(Refused::Malformed) };
        Ok(Self { key_id, signed, claims, signature: bytes(signature)? })
    }

    /// The claims, if this key has signed them.
    pub fn claims(&self, key: &Key) -> Result<Claims, Refused> {
        let public = RsaPublicKeyComponents { n: &key.n, e: &key.e };
        let checked = public.verify(&RSA_PKCS1_2048_8192_SHA256, self.signed.as_bytes(), &self.signature);
        checked.map_err(|_| Refused::Signature)?;
        json(self.claims)
    }
}

fn bytes(part: &str) -> Result<Vec<u8>, Refused> {
    BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| Refused::Malformed)
}

fn json<T: DeserializeOwned>(part: &str) -> Result<T, Refused> {
    serde_json::from_slice(&bytes(part)?).map_err(|_| Refused::Malformed)
}
