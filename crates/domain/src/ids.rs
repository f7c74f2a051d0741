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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_text_everywhere() {
        let text = "0198c7de-0000-7000-8000-000000000001";
        let id: SourceId = text.parse().expect("an id");
        assert_eq!(id.to_string(), text);
        assert_eq!(serde_json::to_value(id).expect("JSON"), serde_json::json!(text));
        assert_eq!(serde_json::from_value::<SourceId>(serde_json::json!(text)).expect("an id"), id);
        let person: PersonId = "17".parse().expect("a number");
        assert_eq!((person.to_string().as_str(), serde_json::to_value(person).ok()), ("17", Some(17.into())));
        for nonsense in ["", "17", "0198c7de", "0198c7de-0000-7000-8000-00000000000g"] {
            assert!(nonsense.parse::<SourceId>().is_err(), "{nonsense:?} was taken for an id");
        }
        for nonsense in ["", "1.5", "m17", "99999999999999999999"] {
            assert!(nonsense.parse::<PersonId>().is_err(), "{nonsense:?} was taken for a number");
        }
    }

    #[test]
    fn new_ids_sort_in_the_order_in_which_they_were_made() {
        let ids: Vec<ActivityId> = (0..2_000).map(|_| ActivityId::new()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
    }
}
