//! The number of batches of a lane that one worker runs at once.

use std::fmt;
use std::str::FromStr;

use super::LaneEntry;

/// The most slots a lane may have: each can hold a database session.
const MOST: u32 = 64;

/// The setting `LANE_SLOTS`: a number for every lane, then numbers for single lanes: `4,ingest=2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    general: u32,
    single: Vec<(String, u32)>,
}

impl Slots {
    /// The slots of one lane: its own number in the setting, else the number it declares, else the general one.
    pub fn of(&self, lane: &LaneEntry) -> u32 {
        let set = self.single.iter().find(|(name, _)| name == lane.name).map(|(_, slots)| *slots);
        set.or(lane.slots).unwrap_or(self.general)
    }

    /// The lanes that the setting names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.single.iter().map(|(name, _)| name.as_str())
    }
}

impl FromStr for Slots {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.trim().parse() {
            Ok(n) if (1..=MOST).contains(&n) => Ok(n),
            _ => Err(format!("{text:?} is not a number from 1 to {MOST}")),
        };
        let mut parts = text.split(',');
        let general = number(parts.next().unwrap_or_default())?;
        let mut single: Vec<(String, u32)> = Vec::new();
        for part in parts {
            let (name, slots) = part.split_once('=').ok_or_else(|| format!("{part:?} is not <lane>=<slots>"))?;
            let name = name.trim();
            if single.iter().any(|(other, _)| other == name) {
                return Err(format!("lane {name:?} is named twice"));
            }
            single.push((name.to_owned(), number(slots)?));
        }
        Ok(Self { general, single })
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.general)?;
        self.single.iter().try_for_each(|(name, slots)| write!(f, ",{name}={slots}"))
    }
}

#[cfg(test)]
mod tests {
    use domain::Fault;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::Env;
    use crate::work::{Lane, Lease, Outcome};

    #[derive(Serialize, Deserialize)]
    struct Plain {}

    impl Lane for Plain {
        const NAME: &'static str = "plain";

        async fn run(self, _: &Env, _: &Lease) -> Result<Outcome, Fault> {
            Ok(Outcome::Done)
        }
    }

    #[derive(Serialize, Deserialize)]
    struct Wide {}

    impl Lane for Wide {
        const NAME: &'static str = "wide";
        const SLOTS: Option<u32> = Some(9);

        async fn run(self, _: &Env, _: &Lease) -> Result<Outcome, Fault> {
            Ok(Outcome::Done)
        }
    }

    #[test]
    fn a_lane_has_its_own_slots_or_those_it_declares_or_the_general_ones() {
        let (plain, wide) = (LaneEntry::of::<Plain>(), LaneEntry::of::<Wide>());
        for (setting, of_plain, of_wide) in
            [("2", 2, 9), ("4", 4, 9), ("4,plain=1", 1, 9), ("4, wide=2", 4, 2), ("1,plain=3,wide=64", 3, 64)]
        {
            let slots: Slots = setting.parse().expect(setting);
            assert_eq!((slots.of(&plain), slots.of(&wide)), (of_plain, of_wide), "{setting}");
            assert_eq!(slots.to_string(), setting.replace(' ', ""));
        }
    }

    #[test]
    fn a_setting_nobody_can_mean_is_refused() {
        for nonsense in ["", "0", "65", "x", "2,", "2,ingest", "2,ingest=0", "2,ingest=x", "ingest=2", "2,a=1,a=2"] {
            assert!(nonsense.parse::<Slots>().is_err(), "{nonsense:?} was accepted");
        }
    }
}
