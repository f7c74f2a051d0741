//! The only HTTP client of the program: pooled, with a time limit on every wait.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::{Fault, Secret};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde::Serialize;

pub(crate) const USER_AGENT: &str = concat!("tributary/", env!("CARGO_PKG_VERSION"));

/// Installs the only TLS provider of this program. An error means that it is already installed.
pub fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[derive(Clone)]
pub struct Http(reqwest::Client);

impl Http {
    pub fn new() -> anyhow::Result<Self> {
        install_tls();
        let client = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(Duration::from_secs(10))
            .timeout(Duration::from_secs(30))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .context("the HTTP client could not be made")?;
        Ok(Self(client))
    }

    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.0
    }

    /// Posts JSON. The URL may contain a token, so no error names it.
    pub async fn post_json(&self, url: &Secret, body: &impl Serialize) -> Result<(), Fault> {
        let sent = self.0.post(url.reveal()).json(body).send().await;
        let answered = sent.and_then(reqwest::Response::error_for_status);
        answered.map(|_| ()).map_err(|error| Fault::Transient(anyhow::Error::new(error.without_url())))
    }

    /// Posts a body unchanged and returns the status and the beginning of the answer. The URL may contain a token, so no error names it.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: Bytes,
    ) -> Result<(u16, String), Fault> {
        let mut request = self.0.post(url).body(body);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let failed = |error: reqwest::Error| Fault::Transient(anyhow::Error::new(error.without_url()));
        let answer = request.send().await.map_err(failed)?;
        let status = answer.status().as_u16();
        let text = answer.text().await.map_err(failed)?;
        Ok((status, text.chars().take(2_000).collect()))
    }

    /// Gets a page and returns the status and the beginning of the answer. An error tells the kind of failure alone.
    pub async fn get(&self, url: &str, within: Duration) -> Result<(u16, String), String> {
        let in_words = |error: reqwest::Error| match error.is_timeout() {
            true => "it did not answer in time".to_owned(),
            false => format!("it could not be reached{}", io_kind(&error)),
        };
        let mut answer = self.0.get(url).timeout(within).send().await.map_err(in_words)?;
        let status = answer.status().as_u16();
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(in_words)? {
            body.extend_from_slice(&piece[..piece.len().min(2_000 - body.len())]);
            if body.len() == 2_000 {
                break;
            }
        }
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Returns the target of a redirect without following it, or `None` for any other answer. The URL may contain a token, so no error
    /// names it.
    pub async fn sent_to(&self, url: &str) -> Result<Option<String>, Fault> {
        let answer = self.0.get(url).send().await;
        let answer = answer.map_err(|error| Fault::Transient(anyhow::Error::new(error.without_url())))?;
        let location = answer.headers().get(reqwest::header::LOCATION).filter(|_| answer.status().is_redirection());
        Ok(location.and_then(|location| Some(location.to_str().ok()?.to_owned())))
    }
}

/// Iterates over the causes of an error.
pub(crate) fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |cause| cause.source())
}

/// Describes only the kind of failure, as the end of a sentence: the causes may name the address.
pub(crate) fn io_kind(error: &reqwest::Error) -> String {
    let kind = causes(error).filter_map(|cause| cause.downcast_ref::<std::io::Error>()).last();
    kind.map(|error| format!(": {}", error.kind())).unwrap_or_default()
}

/// Returns the time of an answer, by the server's clock.
pub(crate) fn answered_at(headers: &HeaderMap) -> Option<DateTime<Utc>> {
    httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok().map(DateTime::from)
}

/// Parses `Retry-After`: seconds, or a date. A date is compared with the answer's own date, never with our clock; if the answer has no
/// date, the wait is `unsure`. Any other value gives `None`.
pub(crate) fn retry_after(headers: &HeaderMap, unsure: Duration, most: Duration) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let wait = if is_number {
        Duration::from_secs(text.parse().unwrap_or(u64::MAX)) // a number that does not fit is long enough
    } else {
        let until: DateTime<Utc> = httpdate::parse_http_date(text).ok()?.into();
        answered_at(headers).map_or(unsure, |now| (until - now).to_std().unwrap_or_default())
    };
    Some(wait.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_in_seconds_or_as_a_date_and_is_never_longer_than_the_most() {
        for (after, date, expected) in [
            ("30", None, Some(30)),
            (" 0 ", None, Some(0)),
            ("86400", None, Some(3_600)),
            ("99999999999999999999999", None, Some(3_600)),
            ("soon", None, None),
            ("", None, None),
            ("-1", None, None),
            ("1.5", None, None),
            ("Sun, 15 Nov 2026 12:01:00 GMT", Some("Sun, 15 Nov 2026 12:00:00 GMT"), Some(60)),
            ("Sun, 15 Nov 2026 11:00:00 GMT", Some("Sun, 15 Nov 2026 12:00:00 GMT"), Some(0)),
            ("Sun, 15 Nov 2026 18:00:00 GMT", Some("Sun, 15 Nov 2026 12:00:00 GMT"), Some(3_600)),
            ("Sun, 15 Nov 2026 18:00:00 GMT", Some("today"), Some(10)),
            ("Sun, 15 Nov 2026 18:00:00 GMT", None, Some(10)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, after.parse().expect("a value"));
            if let Some(date) = date {
                headers.insert(DATE, date.parse().expect("a value"));
            }
            let wait = retry_after(&headers, Duration::from_secs(10), Duration::from_secs(3_600));
            assert_eq!(wait, expected.map(Duration::from_secs), "of {after:?}");
        }
    }
}
