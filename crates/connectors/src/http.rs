//! The one HTTP client: pooled, with limits on every wait.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use domain::{Fault, Secret};
use serde::Serialize;

pub(crate) const USER_AGENT: &str = concat!("tributary/", env!("CARGO_PKG_VERSION"));

/// The one TLS provider of this program. Whoever installed one before us installed this one.
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

    /// Tells somebody something. The URL may carry a token, so it is in no error.
    pub async fn post_json(&self, url: &Secret, body: &impl Serialize) -> Result<(), Fault> {
        let sent = self.0.post(url.reveal()).json(body).send().await;
        let answered = sent.and_then(reqwest::Response::error_for_status);
        answered.map(|_| ()).map_err(|error| Fault::Transient(anyhow::Error::new(error.without_url())))
    }

    /// Posts as it is; returns the status and the beginning of the answer. The URL may carry a token, so it is in no error.
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
}

/// Everything below an error.
pub(crate) fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |cause| cause.source())
}

/// The kind of failure only, as the end of a sentence: the errors below may name the address.
pub(crate) fn io_kind(error: &reqwest::Error) -> String {
    let kind = causes(error).filter_map(|cause| cause.downcast_ref::<std::io::Error>()).last();
    kind.map(|error| format!(": {}", error.kind())).unwrap_or_default()
}
