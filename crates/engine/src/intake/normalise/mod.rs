//! What senders bring, in our words. What is not known is kept in `metadata`, never dropped.

mod fields;
mod generic;

use domain::{ActivityType, Direction};
use http::HeaderMap;
use store::channels::Provider;

/// A body, or a header, that says nothing we can keep; in words for the sender.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub &'static str);

/// An event in our words. Both texts are JSON that PostgreSQL takes.
#[derive(Debug)]
pub(super) struct Normal {
    pub r#type: ActivityType,
    pub direction: Direction,
    pub raw_data: String,
    pub metadata: String,
}

pub(super) fn normalise(provider: Provider, content_type: Option<&str>, body: &[u8]) -> Result<Normal, Malformed> {
    match provider {
        Provider::Generic => generic::normalise(content_type, body),
    }
}

/// What makes a redelivery the same event.
pub(super) fn event_key(provider: Provider, headers: &HeaderMap) -> Result<Option<String>, Malformed> {
    match provider {
        Provider::Generic => generic::event_key(headers),
    }
}
