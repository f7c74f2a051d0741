//! Checks bearer tokens that an OpenID provider has signed: a post that brings one comes from the account that it names. The provider's
//! public keys are fetched when they are needed, kept as long as the provider says, and fetched again for a key that nobody knows yet.

mod keys;
mod token;

use chrono::{DateTime, TimeDelta, Utc};

use self::keys::Keys;
use self::token::{Claims, Token};
use crate::Http;

/// The difference between two clocks that is forgiven.
const SKEW: TimeDelta = TimeDelta::seconds(60);

/// Checks the tokens of one signer for one audience. It is made once, since it keeps the keys.
pub struct Verifier {
    keys: Keys,
    issuers: &'static [&'static str],
    audience: String,
    email: String,
}

/// The reasons why a token proves nothing. None of them repeats a word of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("it is no signed token")]
    Malformed,
    /// Signed by another method than RS256. An unsigned token is one of them.
    #[error("it is not signed by RS256")]
    Algorithm,
    #[error("its key is not one of the issuer's")]
    Key,
    #[error("its signature is wrong")]
    Signature,
    #[error("its issuer is another one")]
    Issuer,
    #[error("it is for another audience")]
    Audience,
    #[error("it is for another account")]
    Email,
    #[error("it has expired")]
    Expired,
    #[error("it is from the future")]
    Early,
    /// Nothing is wrong with the token: the issuer's keys could not be had, and the same token may be good in a minute.
    #[error("the issuer's keys cannot be fetched")]
    NoKeys,
}

impl Refused {
    /// The label of it in metrics.
    pub fn code(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Algorithm => "algorithm",
            Self::Key => "key",
            Self::Signature => "signature",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Email => "email",
            Self::Expired => "expired",
            Self::Early => "early",
            Self::NoKeys => "no_keys",
        }
    }

    /// Whether the sender should try again.
    pub fn is_passing(self) -> bool {
        self == Self::NoKeys
    }
}

impl Verifier {
    /// `email` is the only account that is believed: any other account of the provider's can ask for a token for any audience.
    pub fn new(
        http: &Http,
        keys_url: &str,
        issuers: &'static [&'static str],
        audience: impl Into<String>,
        email: impl Into<String>,
    ) -> Self {
        Self { keys: Keys::new(http, keys_url), issuers, audience: audience.into(), email: email.into() }
    }

    /// Checks a token, as it comes after `Bearer `.
    pub async fn verify(&self, bearer: &str, now: DateTime<Utc>) -> Result<(), Refused> {
        let token = Token::read(bearer)?;
        let key = self.keys.find(&token.key_id).await?;
        let claims = token.claims(&key)?;
        self.check(&claims, now)
    }

    fn check(&self, claims: &Claims, now: DateTime<Utc>) -> Result<(), Refused> {
        let at = |secs: i64| DateTime::from_timestamp(secs, 0).ok_or(Refused::Malformed);
        if !self.issuers.contains(&claims.iss.as_str()) {
            return Err(Refused::Issuer);
        }
        if claims.aud != self.audience {
            return Err(Refused::Audience);
        }
        if claims.email_verified != Some(true) || !claims.email.eq_ignore_ascii_case(&self.email) {
            return Err(Refused::Email);
        }
        if at(claims.exp)? <= now - SKEW {
            return Err(Refused::Expired);
        }
        if at(claims.iat)? > now + SKEW {
            return Err(Refused::Early);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
