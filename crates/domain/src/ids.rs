//! Ids as types, so that one cannot be passed for another. New ones are uuid v7, made by us: they sort by time.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new id, later than every id made before it in this process.
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
    /// An API key (not the key itself).
    KeyId,
    /// One run of one worker process; a restart is a new one.
    WorkerId,
    /// An item that left its queue to wait.
    ParkedId,
    /// A connected account, a channel or the door for files: where documents come from.
    SourceId,
    /// A webhook entrance.
    ChannelId,
    /// One inbound event.
    ActivityId,
    /// A device that claims them.
    NodeId,
    /// One remembered record, message or file.
    DocumentId,
    /// A piece of a document: what is found.
    ChunkId,
    /// One run of work on a source.
    JobId,
    /// What is known of somebody whom the tenant does business with.
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
    /// A person who owns work (table `sales`).
    PersonId,
    /// Somebody whom events are from.
    ContactId,
}
