//! The states an item of work can be in. There is no item without one.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemState {
    /// Due, or due soon; nobody holds it.
    Waiting,
    /// A worker holds its lease.
    Working,
    /// Its last attempt failed; it will be tried again by itself.
    Failed,
    /// Left its queue to wait for a time or an event.
    Parked,
    /// Gave up after its last attempt; a person decides.
    Dead,
    /// A person or a lane decided that it need not be done.
    Skipped,
    /// A person stopped it.
    Cancelled,
}

impl ItemState {
    pub const ALL: [Self; 7] =
        [Self::Waiting, Self::Working, Self::Failed, Self::Parked, Self::Dead, Self::Skipped, Self::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Working => "working",
            Self::Failed => "failed",
            Self::Parked => "parked",
            Self::Dead => "dead",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// What a person may do to an item in this state.
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

impl std::fmt::Display for ItemState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for ItemState {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| format!("unknown state {text:?}; states are {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Retry,
    Skip,
    Cancel,
}

impl Action {
    pub const ALL: [Self; 3] = [Self::Retry, Self::Skip, Self::Cancel];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Skip => "skip",
            Self::Cancel => "cancel",
        }
    }
}

/// How an item is named on pages and in the API: `m<n>` in its queue or archive, `p<uuid>` while parked.
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
        parsed.ok_or_else(|| format!("{text:?} is no item id; one looks like m17 or p0198c7de-…"))
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
}
