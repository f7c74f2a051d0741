//! The form that every provider's events are brought to, and tools to read bodies with. Fields without a place of their own are kept in
//! `metadata`, never dropped.

pub mod fields;
pub mod object;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use domain::{ActivityType, Direction, Region, normal_address};
use http::HeaderMap;

use object::Metadata;

/// Stands for a file's content that was taken out of a large body, with its number after it. No base64 has a colon.
pub(super) const LIFTED: &str = "lifted:";

/// Base64 as mail programs write it: with or without the padding.
pub(super) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why a body or a header cannot be read, in words for the sender.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// A verified request.
pub struct Sent<'a> {
    pub headers: &'a HeaderMap,
    pub content_type: Option<&'a str>,
    pub body: &'a Bytes,
    /// The header with the signature that was verified, where a provider has several kinds.
    pub signature: Option<&'static str>,
    /// Where numbers without a country code are dialled.
    pub region: Option<Region>,
}

/// An event in our words. Its JSON is such that PostgreSQL takes it.
#[derive(Debug)]
pub struct Normal {
    pub r#type: ActivityType,
    pub direction: Direction,
    pub raw_data: String,
    pub metadata: Metadata,
    /// Makes a redelivery the same event.
    pub event_key: Option<String>,
    pub files: Vec<File>,
    /// The address of the sender, or of the recipient of an outbound event.
    pub party: Option<String>,
}

/// A file that came with an event.
#[derive(Debug)]
pub struct File {
    pub name: String,
    pub content_type: Option<String>,
    pub content_id: Option<String>,
    pub content: Content,
}

#[derive(Debug)]
pub enum Content {
    Ready(Bytes),
    Base64(Bytes),
    /// Taken out while the body arrived: the file of this number.
    Lifted(usize),
}

impl Content {
    /// The content, decoded. None: it is no base64, or lies elsewhere. The untouched original has it as it was sent.
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

/// The sender and the recipient of an event, as written.
pub struct Parties {
    pub from: Option<String>,
    pub to: Option<String>,
}

impl Parties {
    /// Adds the normal form of the other party's address to the metadata, and returns it; where it has none, the address as written.
    pub fn keys(
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

/// A sender's id, if it is visible and not too long.
pub fn id(text: &str) -> Option<&str> {
    let text = text.trim();
    ((1..=200).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(text)
}
