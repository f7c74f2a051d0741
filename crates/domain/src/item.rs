//! The states of an item, and the actions that each state allows.

use crate::words;

words! {
    ItemState {
        /// It is due, or due soon, and no worker holds it.
        Waiting = "waiting",
        /// A worker holds its lease.
        Working = "working",
        /// Its last attempt failed; it will be retried automatically.
        Failed = "failed",
        /// It left its queue to wait for a time or an event.
        Parked = "parked",
        /// It was given up after its last attempt; a person decides.
        Dead = "dead",
        /// A person or a lane decided that it is not needed.
        Skipped = "skipped",
        /// A person stopped it.
        Cancelled = "cancelled",
    }
}

impl ItemState {
    /// Whether a person may do this to an item in this state.
    pub fn allows(self, action: Action) -> bool {
        use Action::*;
        match self {
            Self::Waiting => matches!(action, Skip | Cancel),
            Self::Working => matches!(action, Cancel),
            Self::Failed | Self::Parked => true,
            Self::Dead => matches!(action, Retry | Skip),
            Self::Skipped | Self::Cancelled => matches!(action, Retry),
        }
    }
}

words! {
    /// An action of a person on an item.
    Action {
        Retry = "retry",
        Skip = "skip",
        Cancel = "cancel",
    }
}

words! {
    /// The order of claims inside a lane.
    Priority {
        /// Something that happens now.
        Live = "live",
        /// A part of the past that is read in: claimed while no live item of its lane is due.
        History = "history",
    }
}

/// The id of an item on pages and in the API: `m<n>` in its queue or archive, `p<uuid>` while parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemId {
    Message(i64),
    Parked(crate::ParkedId),
}

impl std::fmt::Display for ItemId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Message(id) => write!(f, "m{id}"),
            Self::Parked(id) => write!(f, "p{id}"),
        }
    }
}

impl std::str::FromStr for ItemId {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = match text.split_at_checked(1) {
            Some(("m", number)) => number.parse().ok().map(Self::Message),
            Some(("p", uuid)) => uuid.parse().ok().map(Self::Parked),
            _ => None,
        };
        parsed.ok_or_else(|| format!("{text:?} is not an item id; one looks like m17 or p0198c7de-…"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_ids_survive_a_round_trip_and_nonsense_is_refused() {
        for id in [ItemId::Message(17), ItemId::Parked(crate::ParkedId::new())] {
            assert_eq!(id.to_string().parse::<ItemId>(), Ok(id));
        }
        for nonsense in ["", "m", "17", "mx", "p17", "é1", "m1 or 1=1"] {
            assert!(nonsense.parse::<ItemId>().is_err(), "{nonsense:?} was taken for an item id");
        }
    }

    #[test]
    fn every_state_has_its_own_name() {
        for state in ItemState::ALL {
            assert_eq!(state.as_str().parse::<ItemState>(), Ok(state));
        }
    }

    #[test]
    fn a_person_may_do_to_an_item_what_its_state_allows() {
        use Action::{Cancel, Retry, Skip};
        let allowed: [(ItemState, &[Action]); 7] = [
            (ItemState::Waiting, &[Skip, Cancel]),
            (ItemState::Working, &[Cancel]),
            (ItemState::Failed, &[Retry, Skip, Cancel]),
            (ItemState::Parked, &[Retry, Skip, Cancel]),
            (ItemState::Dead, &[Retry, Skip]),
            (ItemState::Skipped, &[Retry]),
            (ItemState::Cancelled, &[Retry]),
        ];
        assert_eq!(allowed.map(|(state, _)| state), ItemState::ALL, "every state is in the table, in order");
        for (state, actions) in allowed {
            for action in Action::ALL {
                assert_eq!(state.allows(action), actions.contains(&action), "{action} of an item that is {state}");
            }
        }
    }

    #[test]
    fn numbers_at_the_edge_are_read_exactly() {
        assert_eq!(format!("m{}", i64::MAX).parse::<ItemId>(), Ok(ItemId::Message(i64::MAX)));
        let beyond = "m9223372036854775808".parse::<ItemId>();
        assert_eq!(beyond, Err("\"m9223372036854775808\" is not an item id; one looks like m17 or p0198c7de-…".into()));
    }
}
