//! What senders bring, in our words. What is not known is kept in `metadata`, never dropped.

mod fields;
mod generic;
mod lift;
mod object;
mod postmark;
mod twilio;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use domain::{ActivityType, Direction, Region, normal_address};
use http::HeaderMap;
use store::channels::Provider;

pub(super) use lift::{Cut, Lift};
use object::Metadata;

/// What stands for an attachment's content that was taken out of a mail, with its number after it. No base64 has a colon.
pub(super) const LIFTED: &str = "lifted:";

/// Base64 as mail programs write it: with or without the padding.
pub(super) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A body, or a header, that says nothing we can keep; in words for the sender.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub &'static str);

/// A verified request.
pub(super) struct Sent<'a> {
    pub headers: &'a HeaderMap,
    pub content_type: Option<&'a str>,
    pub body: &'a Bytes,
    /// Where numbers without a country code are dialled.
    pub region: Option<Region>,
}

/// An event in our words. What is JSON is so that PostgreSQL takes it.
#[derive(Debug)]
pub(super) struct Normal {
    pub r#type: ActivityType,
    pub direction: Direction,
    pub raw_data: String,
    pub metadata: Metadata,
    /// What makes a redelivery the same event.
    pub event_key: Option<String>,
    pub files: Vec<File>,
    /// The address of whom it is from, or to whom it went.
    pub party: Option<String>,
}

/// A file that came with it.
#[derive(Debug)]
pub(super) struct File {
    pub name: String,
    pub content_type: Option<String>,
    pub content_id: Option<String>,
    pub content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Ready(Bytes),
    Base64(Bytes),
    /// Taken out as it came: the file of this number.
    Lifted(usize),
}

impl Content {
    /// None: it is no base64, or lies elsewhere. The untouched original has it as it was sent.
    pub fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Lifted(_) => None,
            Self::Ready(bytes) => Some(bytes),
            Self::Base64(text) if text.iter().any(u8::is_ascii_whitespace) => {
                let text: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
                LENIENT.decode(text).ok().map(Bytes::from)
            }
            Self::Base64(text) => LENIENT.decode(&text).ok().map(Bytes::from),
        }
    }
}

pub(super) fn normalise(provider: Provider, sent: &Sent) -> Result<Normal, Malformed> {
    match provider {
        Provider::Generic => generic::normalise(sent),
        Provider::Twilio => twilio::normalise(sent),
        Provider::Postmark => postmark::normalise(sent),
    }
}

/// Who an event is from and to, as written.
struct Parties {
    from: Option<String>,
    to: Option<String>,
}

impl Parties {
    /// Puts the addresses in their normal form beside what was said, and returns whose event it is.
    fn keys(
        self,
        direction: Direction,
        region: Option<Region>,
        metadata: &mut Metadata,
    ) -> Result<Option<String>, Malformed> {
        let (name, party) = match direction {
            Direction::Inbound => ("from_key", self.from),
            Direction::Outbound => ("to_key", self.to),
        };
        let key = party.as_deref().and_then(|party| normal_address(party, region));
        if let Some(key) = &key {
            metadata.push_ours(name, &fields::quoted(key)?);
        }
        Ok(key.or(party))
    }
}

/// Of a sender's id: visible and not too long, or it is none.
fn id(text: &str) -> Option<&str> {
    let text = text.trim();
    ((1..=200).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(text)
}
