//! Typed ids, so that one kind cannot be passed for another. New ids are UUIDs of version 7, which sort by time.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Creates an id that sorts after all earlier ids of this process.
            #[expect(clippy::new_without_default, reason = "an id that appears by default is a bug")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    )*};
}

uuid_ids! {
    /// One customer; every row belongs to one.
    TenantId,
    /// An API key (not its secret).
    KeyId,
    /// One run of one worker process; a restart is a new one.
    WorkerId,
    /// An item that left its queue to wait.
    ParkedId,
    /// The origin of documents: a connected account, a channel, or the direct API for files.
    SourceId,
    /// A webhook entrance.
    ChannelId,
    /// One inbound event.
    ActivityId,
    /// A device that claims activities.
    NodeId,
    /// One remembered record, message or file.
    DocumentId,
    /// A part of a document, found by search.
    ChunkId,
    /// One run of work on a source.
    JobId,
    /// A client: a customer of the tenant, described by facts.
    ClientId,
}

macro_rules! number_ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )*};
}

number_ids! {
    /// A person who owns activities (table `sales`).
    PersonId,
    /// A contact, from whom events come.
    ContactId,
}
