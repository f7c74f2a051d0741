//! Sample events, sent as the channel's provider would send them: for the test button, `channel send-test` and the demo.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use store::channels::Secrets;
use uuid::Uuid;

use super::providers::{ChannelSpec, Said, Sending};

/// A signed request.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Path and query below the server's own URL.
    pub target: String,
    /// Names are in lower case.
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

/// A test event. `base_url`: as the provider calls it. None: the channel lacks the secret that it is signed with.
pub fn sample(spec: &ChannelSpec, secrets: &Secrets, base_url: &str, now: DateTime<Utc>) -> Option<Sample> {
    sample_of(spec, secrets, base_url, now, &spec.sample.says)
}

/// The same with a text of the caller's.
pub fn sample_of(
    spec: &ChannelSpec,
    secrets: &Secrets,
    base_url: &str,
    now: DateTime<Utc>,
    said: &Said<'_>,
) -> Option<Sample> {
    let target = format!("/ingest/{}", secrets.ingestion_key.reveal());
    let (url, id) = (format!("{base_url}{target}"), Uuid::now_v7().simple().to_string());
    let (headers, body) = (spec.sample.make)(&Sending { secrets, url: &url, now, id: &id }, said)?;
    Some(Sample { target, headers, body: body.into() })
}
